"""The steps of tests/run, lane by lane, in the order in which they start."""
import os
import pathlib

from step import Step

WHEEL = "wheel/build/x86_64-unknown-linux-gnu"
"""The folder of the wheel's C library, for an older C library than this machine's: all tests of a release use that one."""

RUST = "cargo test --workspace --locked --no-fail-fast"
"""Always the whole workspace: a single package has other features, so most crates would be compiled again. All failures are
found in one run."""

TIMED = "-- --include-ignored -Zunstable-options --report-time"
"""Also the tests that need other programs, with the seconds of each, which libtest calls unstable."""

ENGINES = ("vllm", "llamacpp", "litellm", "transformers", "dynamo")
"""The real servers, those whose tests take longest first."""

COMPILED_ENGINES = ("mistralrs", "ollama")
"""Those that take many minutes to compile."""

THREADS = 8
"""Tests of the workspace at a time: most of them wait."""


def steps(is_long):
    """The table of a run, with large counts or without."""
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", "target")).resolve()

    def pick(usual, long):
        return long if is_long else usual

    # That of packages with --long; it takes three times as long to build.
    built = target / pick("dist", "profile/use/x86_64-unknown-linux-gnu/dist") / "tokenmeter"
    binary = f"TOKENMETER_BIN={built}"
    timed = f"export RUST_TEST_THREADS={THREADS} CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER='env RUSTC_BOOTSTRAP=1'\n"

    def only_long(*table):
        return table if is_long else ()

    # The profile `dist` is that of a release; it takes minutes more.
    profile = pick("release", "dist")
    library = f"TOKENMETER_LIBRARY={target}/{WHEEL}/{profile}/libtokenmeter_ffi.so"

    install = (
        Step("install-telemetry", "install", "tests/telemetry/install"),
        Step("install-prices", "install", "tests/prices/install"),
        Step("install-finance", "install", "tests/finance/install"),
        Step("install-page", "install", "tests/page/install"),
        Step("install-engines", "install", "tests/engines/install all"),
        Step("install-providers", "install", "tests/providers/install"),
        Step("install-kubernetes", "install", "tests/kubernetes/install"),
        Step("install-deny", "install", "tests/cargo-tool deny cargo-deny 0.20.2"),
        Step("install-fuzz", "install", "tests/cargo-tool fuzz cargo-fuzz 0.13.2"),
        *only_long(Step("install-cargo-c", "install", "tests/cargo-tool cinstall cargo-c 0.10.24")),
    )
    # What most tests wait for comes first. Cargo builds a profile once at a time: the wheel's differs from that of the tests.
    build = (
        # The commit is part of the version that a package states.
        Step("build-binary", "build",
             pick("TOKENMETER_COMMIT=$(git rev-parse --short HEAD) cargo build --profile dist -p tokenmeter "
                  "--no-default-features --features dist --locked", "sidecar/tokenmeter/package/binary")),
        Step("build-tests", "build", f"{RUST} --no-run && "
             "cargo build --workspace --locked --bin bench-proxy --bin fuzz-seeds"),
        Step("build-wheel", "build", f"PROFILE={profile} ffi/python/build-wheel"),
        Step("install-package", "build", "tests/package/install"),
        Step("build-fuzz", "build", "tests/fuzz/run build", ("install-fuzz",)),
        Step("install-policy", "build", "tests/kubernetes/policy/install"),
        Step("licences", "build", "cargo deny --config .deny.toml check bans licenses sources", ("install-deny",)),
    )
    test = (
        Step("workspace", "test",
             f"{timed}{RUST} --lib --bins --examples --tests {TIMED} {pick('--skip cargo_c --skip ::long::', '')}",
             ("build-tests", "install-telemetry", "install-prices", "install-finance",
              *pick((), ("install-cargo-c",)))),
        Step("documents", "test", f"{RUST} --doc", ("build-tests",)),
        # After the begin of both: their cargo would wait for its.
        Step("lint", "build", "tests/lint", ("build-tests",)),
        *(Step(f"engines-{engine}", "test", f"{binary} tests/engines/run {engine} --durations=10",
               ("build-binary", "install-engines")) for engine in pick(ENGINES, ENGINES + COMPILED_ENGINES)),
        # The process with TLS of its clients; with --long the process and the relay with TLS of both sides.
        Step("tls", "test", f"{timed}TOKENMETER_TEST_TLS={pick('clients', 'both')} {RUST} --test process "
             f"{pick('', '--test relay')} {TIMED} --skip ::long::", ("workspace",)),
        Step("instructions", "test", f"{target}/debug/bench-proxy instructions --tokenmeter {built} "
             "--budget tests/bench/instructions.txt", ("build-tests", "build-binary")),
        Step("page", "test", f"{binary} tests/page/run", ("build-binary", "install-page", "install-telemetry")),
        Step("providers", "test", f"{binary} tests/providers/run --durations=10", ("build-binary", "install-providers")),
        Step("plugin", "test", f"{binary} {library} ffi/python/tokenmeter-vllm/tests/server/run --durations=10",
             ("build-binary", "build-wheel", "install-engines")),
        Step("pods", "test", f"{binary} tests/pods/run", ("build-binary",)),
        Step("package", "test", f"{binary} tests/package/run", ("build-binary", "install-package")),
        Step("wheel", "test", f"ffi/python/check-wheel {target}/wheel/tokenmeter-*.whl", ("build-wheel",)),
        Step("chart", "test", f"{binary} tests/kubernetes/run --durations=10", ("build-binary", "install-kubernetes")),
        Step("policy", "test", f"{RUST} --test policy -- --include-ignored", ("build-tests", "install-policy")),
        # Its library takes the place of the one that the workspace's tests use.
        Step("exporters", "test", f"{RUST} --features tokenmeter-ffi/exporters --lib --test ffi "
             "-- --include-ignored exporters symbols header misuse wrapper", ("workspace",)),
        Step("fuzz", "test", pick("tests/fuzz/run 60", "tests/fuzz/run 2400"), ("build-fuzz",)),
        Step("gpu", "test", f"{binary} tests/gpu/run --rehearse --seconds 2", ("build-binary",)),
        Step("runner", "test", "python3 -B tests/lanes/test_lanes.py"),
        *only_long(
            # Its builds of the program have other features, and take the place of those that other tests start.
            Step("mutants", "test", "tests/mutants/run --in-diff", ("workspace", "tls", "install-prices")),
            Step("parsers", "test", f"{binary} tests/parsers/run -s", ("build-binary",)),
            Step("sanitize", "test", "ffi/tests/sanitize"),
            Step("llamacpp", "test", "ffi/tests/llamacpp", ("install-engines",)),
            Step("apiserver", "test", f"{binary} tests/kubernetes/apiserver/run", ("build-binary",)),
        ),
    )
    return install + build + test

//! The command `redirect`: rules in the current network namespace that send connections to a server's port to
//! tokenmeter instead. `nft` sets them in one transaction, in a table of their own.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::process::{Command, ExitCode, Stdio};

use clap::Args;

use super::print_message;

/// The arguments of `redirect`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
#[command(after_help = EXAMPLES)]
pub struct RedirectArgs {
    /// Port of a tokenmeter that runs with `--transparent`; required unless `--remove`.
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..), required_unless_present = "remove")]
    to: Option<u16>,
    /// Port that clients address; repeat for several; required unless `--remove`.
    #[arg(long = "port", value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..), required_unless_present = "remove")]
    ports: Vec<u16>,
    /// User id whose connections are not redirected: tokenmeter must run as it; repeat for several.
    #[arg(long = "exclude-uid", value_name = "UID", default_values_t = [65532])]
    exclude_uids: Vec<u32>,
    /// Remove the rules.
    #[arg(long, conflicts_with_all = ["to", "ports"])]
    remove: bool,
    /// Print the rules as input for `nft -f -`, without setting them.
    #[arg(long)]
    print: bool,
}

/// Sets or removes the rules.
pub(crate) fn run(args: &RedirectArgs) -> Result<ExitCode, RedirectError> {
    let rules = match args.to {
        Some(to) if args.ports.contains(&to) => return Err(RedirectError::Same(to)),
        Some(to) => rules(to, &args.ports, &args.exclude_uids),
        None => REMOVAL.to_owned(),
    };
    if args.print {
        super::print(&rules);
        return Ok(ExitCode::SUCCESS);
    }
    set(&rules)?;
    let ports = args.ports.iter().map(u16::to_string).collect::<Vec<_>>().join(", ");
    print_message(&match args.to {
        Some(to) => format!("connections to port {ports} of this network namespace now go to port {to}"),
        None => "no connection is redirected any more".to_owned(),
    });
    Ok(ExitCode::SUCCESS)
}

/// Deletes the table, also if it does not exist.
const REMOVAL: &str = "table inet tokenmeter\ndelete table inet tokenmeter\n";

fn rules(to: u16, ports: &[u16], uids: &[u32]) -> String {
    fn list<T: ToString>(items: &[T]) -> String {
        items.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    }
    let (ports, uids) = (list(ports), list(uids));
    let mut rules = REMOVAL.to_owned();
    // From outside the pod, and from other processes in it; what loops through `lo` passed the output chain already.
    write!(
        rules,
        "table inet tokenmeter {{\n\
         \tchain prerouting {{\n\
         \t\ttype nat hook prerouting priority dstnat; policy accept;\n\
         \t\tiifname != \"lo\" tcp dport {{ {ports} }} redirect to :{to}\n\
         \t}}\n\
         \tchain output {{\n\
         \t\ttype nat hook output priority -100; policy accept;\n\
         \t\tmeta skuid {{ {uids} }} return\n\
         \t\toifname \"lo\" tcp dport {{ {ports} }} redirect to :{to}\n\
         \t}}\n\
         }}\n"
    )
    .expect("a String takes any text");
    rules
}

fn set(rules: &str) -> Result<(), RedirectError> {
    let mut nft = Command::new("nft")
        .args(["-f", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(RedirectError::Start)?;
    if let Some(mut stdin) = nft.stdin.take() {
        // If nft ends early, its message says why.
        let _ = stdin.write_all(rules.as_bytes());
    }
    let output = nft.wait_with_output().map_err(RedirectError::Start)?;
    match output.status.success() {
        true => Ok(()),
        false => Err(RedirectError::Nft(String::from_utf8_lossy(&output.stderr).trim().to_owned())),
    }
}

/// The error of the command.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RedirectError {
    /// The port of the server is also tokenmeter's.
    #[error("port {0} cannot be redirected to itself; choose another --to")]
    Same(u16),
    /// nft did not start.
    #[error("{}", not_started(.0))]
    Start(io::Error),
    /// The message of nft.
    #[error("{capability}nft: {0}", capability = capability(.0))]
    Nft(String),
}

fn not_started(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => {
            "nft is not installed; install it with `apt-get install nftables`".to_owned()
        }
        _ => format!("nft cannot be started: {error}"),
    }
}

fn capability(message: &str) -> &'static str {
    if message.contains("Operation not permitted") { "the rules need the capability NET_ADMIN; " } else { "" }
}

const EXAMPLES: &str = "\
Examples:
  tokenmeter redirect --to 15001 --port 8000
  tokenmeter run --transparent --listen '[::]:15001' \\
    --upstream http://127.0.0.1:8000
  tokenmeter redirect --remove

Exit codes: 0 done; 1 failure, with the reason; 2 invalid flags.";

#[cfg(test)]
mod tests {
    use super::rules;

    #[test]
    fn rules_replace_earlier_ones_and_exclude_own_users() {
        let expected = "\
table inet tokenmeter
delete table inet tokenmeter
table inet tokenmeter {
\tchain prerouting {
\t\ttype nat hook prerouting priority dstnat; policy accept;
\t\tiifname != \"lo\" tcp dport { 8000, 8001 } redirect to :15001
\t}
\tchain output {
\t\ttype nat hook output priority -100; policy accept;
\t\tmeta skuid { 65532, 0 } return
\t\toifname \"lo\" tcp dport { 8000, 8001 } redirect to :15001
\t}
}
";
        assert_eq!(rules(15001, &[8000, 8001], &[65532, 0]), expected);
    }
}

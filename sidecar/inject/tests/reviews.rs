//! The recorded reviews of `tests/kubernetes/reviews`: each pod and each reason is as committed, in `expected`.
//! `UPDATE_GOLDEN=1` rewrites them.

mod recorded;

use std::fmt::Write;
use std::fs;

use inject::dry_run::{self, dry_run};
use inject::{Reason, inject};
use recorded::{config, expected, kubernetes, patched, reviews};
use serde_json::{Value, json};

#[test]
fn recorded_reviews_have_their_pods() {
    let config = config();
    let mut outcomes = String::new();
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    for (name, review) in reviews() {
        let answer = inject::review::answer(review.to_string().as_bytes(), &config).expect(&name);
        let response = &answer.review["response"];
        assert_eq!(response["allowed"], true, "{name}");
        assert_eq!(response["uid"], review["request"]["uid"], "{name}");
        writeln!(outcomes, "{name}: {}", answer.outcome).expect("a string takes everything");
        for warning in response["warnings"].as_array().into_iter().flatten() {
            writeln!(outcomes, "  {}", warning.as_str().expect(&name)).expect("a string takes everything");
        }
        let path = expected(&format!("{name}.json"));
        let Some(pod) = patched(&review, response) else {
            assert!(!path.exists(), "{name} is left, and {} exists", path.display());
            continue;
        };
        let text = format!("{pod:#}\n");
        if update {
            fs::write(&path, &text).expect("the folder exists");
        }
        let golden = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(golden, text, "{name}");
        assert_eq!(inject(&pod, &config), Err(Reason::Already), "{name}: a second call changes nothing");
    }
    let path = expected("outcomes.txt");
    if update {
        fs::write(&path, &outcomes).expect("the folder exists");
    }
    assert_eq!(fs::read_to_string(&path).expect("the outcomes can be read"), outcomes);
}

/// What is added to a pod stands at the end of its lists: no entry of the owner's moves or changes unless it names the
/// server's port.
#[test]
fn patches_only_add_outside_the_server() {
    let config = config();
    for (name, review) in reviews() {
        let answer = inject::review::answer(review.to_string().as_bytes(), &config).expect(&name);
        let Some(pod) = patched(&review, &answer.review["response"]) else { continue };
        let before = &review["request"]["object"];
        for list in ["volumes", "initContainers"] {
            let (old, new) = (&before["spec"][list], &pod["spec"][list]);
            let old = old.as_array().cloned().unwrap_or_default();
            let new = new.as_array().cloned().unwrap_or_default();
            assert!(new.starts_with(&old), "{name}: {list}");
        }
        let changed = |(old, new): &(&Value, &Value)| old != new;
        let containers = |pod: &Value| pod["spec"]["containers"].as_array().expect(&name).clone();
        let (old, new) = (containers(before), containers(&pod));
        assert_eq!(old.len(), new.len(), "{name}");
        assert_eq!(old.iter().zip(&new).filter(changed).count(), 1, "{name}: one container changes");
    }
}

/// A dry run makes the same pods, of pods and of pod templates, and survives YAML.
#[test]
fn dry_run_has_the_pods_of_reviews() {
    let config = config();
    for (name, review) in reviews() {
        let mut pod = review["request"]["object"].clone();
        pod["kind"] = "Pod".into();
        let deployment = json!({"kind": "Deployment", "metadata": {"name": name}, "spec": {"template": pod}});
        let (as_pod, as_template) = (to_yaml(&pod), to_yaml(&deployment));
        let manifest = format!("{as_pod}---\nkind: Service\nspec: {{type: ClusterIP}}\n---\n{as_template}");
        let runs = dry_run(&manifest, &config).expect(&name);
        assert_eq!(runs.len(), 2, "{name}");
        assert_eq!(runs[1].object, format!("Deployment {name}"));
        let found = |at: usize| {
            let yaml = &runs[at].result.as_ref().map_err(Clone::clone)?.0;
            Ok(serde_saphyr::from_str::<Value>(yaml).expect(&name))
        };
        let expected = inject(&pod, &config).map(|injected| injected.pod);
        assert_eq!(found(0), expected, "{name}");
        assert_eq!(found(1).map(|deployment| deployment["spec"]["template"].clone()), expected, "{name}");
    }
}

fn to_yaml(value: &Value) -> String {
    serde_saphyr::to_string(value).expect("JSON is YAML")
}

#[test]
fn dry_run_without_a_pod_is_an_error() {
    for manifest in ["kind: Service\nspec: {type: ClusterIP}\n", "", "a: [", "kind: Pod\n"] {
        assert!(dry_run(manifest, &config()).is_err(), "{manifest}");
    }
}

/// The chart writes the config into a ConfigMap, among its other objects.
#[test]
fn dry_run_reads_the_config_map() {
    let text = fs::read_to_string(kubernetes("policy/config.yaml")).expect("the config can be read");
    let map = json!({"kind": "ConfigMap", "data": {"injection.yaml": text}});
    let rendered = format!("---\n# Source\n{}", to_yaml(&map));
    for file in [text.clone(), rendered.clone(), format!("kind: Service\nspec: {{}}\n{rendered}")] {
        assert_eq!(dry_run::config(&file).expect("valid").container, config().container);
    }
    assert!(dry_run::config("kind: ConfigMap\ndata: {}\n").is_err());
}

/// The delay before the drain is part of the pod's end.
#[test]
fn deadline_includes_delay_and_grace() {
    let mut config = config();
    config.delay_seconds = 100;
    let (name, review) = reviews().into_iter().find(|(name, _)| name == "raw-pod").expect("recorded");
    let pod = inject(&review["request"]["object"], &config).expect(&name).pod;
    assert_eq!(pod["spec"]["terminationGracePeriodSeconds"], 100 + config.grace_seconds + 30);
}

#[test]
fn sidecar_listens_on_the_address() {
    let mut config = config();
    config.address = "[::]".to_owned();
    let (name, review) = reviews().into_iter().find(|(name, _)| name == "raw-pod").expect("recorded");
    let pod = inject(&review["request"]["object"], &config).expect(&name).pod;
    let env = pod["spec"]["initContainers"][0]["env"].as_array().expect("a list");
    assert!(env.contains(&json!({"name": "TOKENMETER_LISTEN", "value": "[::]:8000"})), "{env:?}");
}

/// Without native sidecars the container is a plain one.
#[test]
fn plain_container_is_added_to_containers() {
    let mut config = config();
    config.native = false;
    let (name, review) = reviews().into_iter().find(|(name, _)| name == "init-containers").expect("recorded");
    let pod = inject(&review["request"]["object"], &config).expect(&name).pod;
    let last = pod["spec"]["containers"].as_array().expect(&name).last().expect(&name).clone();
    assert_eq!(last["name"], "tokenmeter");
    assert!(last.get("restartPolicy").is_none(), "only native sidecars have a restart policy");
    assert_eq!(pod["spec"]["initContainers"], review["request"]["object"]["spec"]["initContainers"]);
}

//! The models that the head of a request names: in its path, its query or its header fields. Gateways route by such fields,
//! or take them in place of the body's member (LiteLLM takes `?model=`).
//!
//! | field | gateway |
//! |---|---|
//! | `x-ai-eg-model` | Envoy AI Gateway |
//! | `x-gateway-model-name`, `x-gateway-model-name-rewrite` | Gateway API inference extension |
//! | `x-higress-llm-model` | Higress |
//! | `x-selected-model`, `x-vsr-selected-model` | vLLM's semantic router |
//! | `azureml-model-deployment` | Azure Machine Learning |
//! | `x-amzn-sagemaker-target-model`, `x-amzn-sagemaker-inference-component` | SageMaker |
//! | `mm-model-id`, `mm-vmodel-id`, `seldon-model`, `serve_multiplexed_model_id` | ModelMesh, Seldon, Ray Serve |
//! | `x-portkey-config` | Portkey: an id, or JSON with any models |
//!
//! Their names follow one rule, by which the fields of other gateways are read, too: the word `model`, `deployment` or
//! `fallbacks`, and behind it only words that still mean its name.

use http::HeaderMap;
use scan::OtherModels;

use crate::query::parameters;
use crate::route::add_models;
use crate::word_list;

/// Returns the models that a request names in its path (as the upstream will see it), its query and its header fields.
pub fn of_head(path: &str, query: Option<&str>, headers: &HeaderMap) -> OtherModels {
    let mut models = of_target(path, query);
    for (name, value) in headers {
        add_field(name.as_str(), value.as_bytes(), &mut models);
    }
    models
}

/// Returns the models that the path and the query name.
pub(crate) fn of_target(path: &str, query: Option<&str>) -> OtherModels {
    let mut models = OtherModels::default();
    add_models(path, &mut models);
    for (name, value) in query.into_iter().flat_map(parameters) {
        if is_parameter(&name) {
            models.add(&value);
        }
    }
    models
}

/// Returns true if a parameter with this name names a model, in any style: `model`, `modelId`, `models[]`.
pub(crate) fn is_parameter(name: &[u8]) -> bool {
    let name: Vec<u8> = name.iter().copied().filter(u8::is_ascii_alphanumeric).collect();
    word_list::has(&PARAMETERS, &name)
}

/// Adds the models that a header field names.
pub(crate) fn add_field(name: &str, value: &[u8], models: &mut OtherModels) {
    match name {
        PORTKEY => models.mark_incomplete(),
        name if names_model(name) || name == SAGEMAKER => models.add(value),
        _ => {}
    }
}

/// Returns false if no field with this end of its name names a model: most fields need no more.
pub(crate) fn may_name(name: &[u8]) -> bool {
    let ends: [&[u8; 2]; 10] = [b"el", b"ls", b"ks", b"nt", b"ts", b"me", b"id", b"te", b"de", b"al"];
    let is_rare = matches!(name, [.., b'e', b'y'] | [.., b'i', b'g']);
    name.last_chunk().is_some_and(|end| ends.contains(&end)) || is_rare
}

/// Returns true if a header field with this name names a model.
fn names_model(name: &str) -> bool {
    let mut words = name.rsplit(['-', '_']);
    let mut word = words.next();
    while let Some("name" | "id" | "rewrite" | "override" | "final" | "key" | "deployment") = word {
        if word == Some("deployment") {
            return true;
        }
        word = words.next();
    }
    matches!(word, Some("model" | "models" | "vmodel" | "fallbacks" | "deployment" | "deployments"))
}

/// The parameters of a query, without their punctuation.
const PARAMETERS: [&str; 9] = [
    "model",
    "models",
    "modelid",
    "modelname",
    "deployment",
    "deploymentid",
    "deploymentname",
    "engine",
    "fallbacks",
];

/// SageMaker's name of a model at an endpoint with several.
const SAGEMAKER: &str = "x-amzn-sagemaker-inference-component";

/// Portkey's field of routing rules.
const PORTKEY: &str = "x-portkey-config";

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &str, query: &str, fields: &[(&str, &str)]) -> (String, bool) {
        let mut models = of_target(path, Some(query));
        for (name, value) in fields {
            let before = models.clone();
            add_field(name, value.as_bytes(), &mut models);
            assert!(models == before || may_name(name.as_bytes()), "{name}");
        }
        (models.names().join(" "), models.is_complete())
    }

    #[test]
    fn each_place_of_a_head_is_read() {
        for (path, query, names) in [
            ("/v1/chat/completions", "", ""),
            ("/v1/chat/completions", "api-version=2", ""),
            ("/v1/chat/completions", "model=a%2Fb", "a/b"),
            ("/v1/chat/completions", "x=1&mod%65l=a&Model_Id=b&models[]=c,d", "a b c,d c d"),
            ("/engines/a/b/chat/completions", "", "a/b"),
            ("/openai/deployments/a/deployments/b/completions", "", "a/deployments/b b"),
            ("/deployments/a%2F..%2Fb/embeddings", "", "a/../b b"),
            ("/serving-endpoints/a/invocations", "", "a"),
            ("/models/org/a/v1/chat/completions", "", "org/a"),
        ] {
            assert_eq!(read(path, query, &[]), (names.to_owned(), true), "{path}?{query}");
        }
    }

    /// The rest of the path would be read for each of its segments.
    #[test]
    fn path_of_many_mounts_is_incomplete() {
        let path = |mounts: usize| format!("{}/a,b/chat/completions", "/models".repeat(mounts));
        assert!(read(&path(3), "", &[]).1);
        assert!(!read(&path(9_000), "", &[]).1);
        assert!(!read(&path(9_000).replace("ls/", "ls%2F"), "", &[]).1);
    }

    #[test]
    fn each_gateways_field_is_read() {
        for name in [
            "x-ai-eg-model",
            "x-gateway-model-name",
            "x-gateway-model-name-rewrite",
            "x-higress-llm-model",
            "x-selected-model",
            "azureml-model-deployment",
            "x-amzn-sagemaker-target-model",
            "x-amzn-sagemaker-inference-component",
            "mm-model-id",
            "mm-vmodel-id",
            "seldon-model",
            "serve_multiplexed_model_id",
            "helicone-model-override",
            "model",
        ] {
            assert_eq!(read("/", "", &[(name, "m")]), ("m".to_owned(), true), "{name}");
        }
        for name in
            ["x-model-provider", "content-type", "authorization", "x-request-id", "host", "x-data-model-x"]
        {
            assert_eq!(read("/", "", &[(name, "m")]), (String::new(), true), "{name}");
        }
        assert_eq!(read("/", "", &[("x-portkey-config", "pc-1")]), (String::new(), false));
    }
}

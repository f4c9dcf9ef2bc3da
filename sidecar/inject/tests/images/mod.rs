//! Names of public images, and the server that each is recognised as.

use serde_json::{Value, json};

/// The images, the args of their container, and the server; `""` if there is none.
pub(crate) const IMAGES: [(&str, &[&str], &str); 50] = [
    ("vllm/vllm-openai:v0.11.0", &["Qwen/Qwen3-8B"], "vllm"),
    ("registry.example:5000/mirror/vllm-openai@sha256:00", &[], "vllm"),
    ("vllm/vllm-openai-rocm:v0.14.0", &["--model", "m"], "vllm"),
    ("vllm/vllm-openai-xpu:v0.20.0", &["--model", "m"], "vllm"),
    ("vllm/vllm-openai-cpu:latest-x86_64", &["--model=m"], "vllm"),
    ("vllm/vllm-tpu:v0.11.1", &["--model=m"], "vllm"),
    ("public.ecr.aws/q9t5s3a7/vllm-arm64-cpu-release-repo:v0.11.0", &["--model=m"], "vllm"),
    ("vllm-cpu-env", &["--model=m"], "vllm"),
    ("rocm/vllm:rocm6.4.1_vllm_0.10.1_20250909", &["--model=m"], "vllm"),
    (
        "public.ecr.aws/deep-learning-containers/vllm:server-cuda",
        &["--model", "m", "--host", "0.0.0.0"],
        "vllm",
    ),
    ("1.dkr.ecr.us-east-1.amazonaws.com/huggingface-vllm-inference:0.11-gpu", &["--model=m"], "vllm"),
    (
        "us-docker.pkg.dev/vertex-ai/vertex-vision-model-garden-dockers/pytorch-vllm-serve:1",
        &["--model=m"],
        "vllm",
    ),
    (
        "us-docker.pkg.dev/d/vertex-model-garden/vllm-inference.cu121.0-6.ubuntu2204.py310",
        &["--model=m"],
        "vllm",
    ),
    ("vllm-inference:latest", &["--model=m"], "vllm"),
    ("registry.redhat.io/rhaiis/vllm-cuda-rhel9:3.2.3", &["--model=m"], "vllm"),
    ("registry.redhat.io/rhoai/odh-vllm-gaudi-rhel9@sha256:00", &["--port=8080"], "vllm"),
    ("ghcr.io/quic/cloud_ai_inference_vllm:1.21.2.0", &["--model", "m", "--port", "8000"], "vllm"),
    ("quay.io/rh-aiservices-bu/vllm-openai-ubi9:0.3.0", &["--model=m"], "vllm"),
    // These may have no entrypoint: only flags show that they do.
    ("rocm/vllm:latest", &["sleep", "infinity"], ""),
    ("quay.io/ascend/vllm-ascend:v0.11.0", &[], ""),
    ("rocm/vllm:latest", &[], ""),
    // The server's router, clients, tools and forks.
    ("lmcache/vllm-router:latest", &["--port=8000"], ""),
    ("vllm/vllm-exporter", &["--port=8000"], ""),
    ("vllm-openai-router:1", &["--port=8000"], ""),
    ("my-vllm/vllm-openai-fork", &["--model=m"], ""),
    ("vllm-metrics-proxy", &["--port=8000"], ""),
    ("ghcr.io/berriai/litellm-database:main-stable", &["--port", "4000"], ""),
    ("ghcr.io/vllm-project/aibrix-controller-manager", &["--leader-elect"], ""),
    ("vllmish", &["--port=8000"], ""),
    ("1.dkr.ecr.us-east-1.amazonaws.com/djl-inference:0.33.0-lmi15.0.0-cu128", &[], ""),
    ("nvcr.io/nim/meta/llama-3.1-8b-instruct:1", &[], ""),
    ("lmsysorg/sglang:v0.5.5", &["--model-path", "m"], "sglang"),
    ("lmsysorg/sglang-router:latest", &["--port", "8000"], ""),
    ("ghcr.io/huggingface/text-generation-inference:3.3.6-rocm", &["--model-id", "m"], "tgi"),
    (
        "us-docker.pkg.dev/d/gcr.io/huggingface-text-generation-inference-cu124.2-3.ubuntu2204.py311",
        &[],
        "tgi",
    ),
    ("us-docker.pkg.dev/d/gcr.io/huggingface-text-generation-inference-gpu.2.0.3", &["--num-shard=1"], "tgi"),
    ("1.dkr.ecr.us-west-2.amazonaws.com/huggingface-pytorch-tgi-inference:2.7.0-tgi3.3.6-gpu", &[], "tgi"),
    ("ghcr.io/huggingface/tgi-gaudi:2.3.1", &["--model-id", "m"], "tgi"),
    ("us-docker.pkg.dev/d/gcr.io/huggingface-text-embeddings-inference-cu122.1-5.ubuntu2204", &[], ""),
    ("us-docker.pkg.dev/d/gcr.io/huggingface-pytorch-inference-cu121.2-2", &[], ""),
    ("ollama/ollama:0.12.6", &["serve"], "ollama"),
    ("registry.example/mirror/ollama", &[], "ollama"),
    ("registry.example/ollama-rocm:0.12", &[], "ollama"),
    ("ghcr.io/open-webui/open-webui:ollama", &[], ""),
    ("registry.example/open-webui-ollama:1", &[], ""),
    ("registry.example/ollama-exporter:1", &[], ""),
    ("ghcr.io/ggml-org/llama.cpp:server-cuda", &["-m", "m"], "llama_cpp"),
    ("registry.example/llama-cpp-server-vulkan:1", &["-m", "m"], "llama_cpp"),
    ("registry.example/llama-cpp-python:1", &["--model", "m"], ""),
    ("ghcr.io/ggml-org/llama.cpp:full", &["--server"], ""),
];

/// Returns a review for each image: a pod with one container, whose server has its default port.
pub(crate) fn reviews() -> Vec<(String, Value)> {
    let review = |(image, args, _): &(&str, &[&str], &str)| {
        let object = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"generateName": "model-", "labels": {"app": "model"}},
            "spec": {"containers": [{"name": "model", "image": image, "args": args}]},
        });
        let request = json!({
            "uid": image,
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "namespace": "models",
            "operation": "CREATE",
            "object": object,
        });
        let review =
            json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request});
        (format!("{image} {args:?}"), review)
    };
    IMAGES.iter().map(review).collect()
}

"""The rights of the chart's service accounts: those of every account, and no more."""

import pytest

import chart
import pods
from release import NAME, NAMESPACE, NAMESPACES

ACCOUNT = f"{NAME}-webhook"
# What Kubernetes grants to every account: questions about its own rights, and the server's public paths.
EVERYONE = {
    ("create", "selfsubjectaccessreviews.authorization.k8s.io"),
    ("create", "selfsubjectrulesreviews.authorization.k8s.io"),
    *[("get", path) for path in ["/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi", "/openapi/*"]],
    *[("get", path) for path in ["/readyz", "/version", "/version/"]],
    *[("get", path) for path in ["/.well-known/openid-configuration", "/openid/v1/jwks"]],
}
ROLES = ["clusterroles", "clusterrolebindings", "roles", "rolebindings"]


def test_chart_creates_no_role(release, cluster):
    for kind in ROLES:
        found = cluster.ask("GET", f"/apis/rbac.authorization.k8s.io/v1/{kind}")["items"]
        assert found, "the server's own"
        for one in found:
            labels = one["metadata"].get("labels", {})
            assert labels.get("app.kubernetes.io/managed-by") != "Helm", one["metadata"]
            for subject in one.get("subjects") or []:
                assert subject.get("namespace") != NAMESPACE, one


def accounts(release):
    """Returns the service accounts that the release made, and that of a namespace."""
    text = release.helm("get", "manifest", NAME).stdout
    made = [one["metadata"]["name"] for one in chart.documents(text) if one["kind"] == "ServiceAccount"]
    assert made == [ACCOUNT]
    return [*made, "default"]


def token(cluster, account):
    """Returns a token of a service account, as the pods of the account could have one."""
    path = f"{NAMESPACES}/{NAMESPACE}/serviceaccounts/{account}/token"
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    return cluster.ask("POST", path, request)["status"]["token"]


def test_accounts_have_the_rights_of_everyone(release, cluster):
    for account in accounts(release):
        spec = {"spec": {"namespace": NAMESPACE}}
        kind = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview"}
        path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
        status = cluster.ask("POST", path, {**kind, **spec}, token=token(cluster, account))["status"]
        assert not status["incomplete"]
        rights = {
            (verb, f"{resource}.{group}")
            for rule in status["resourceRules"]
            for verb in rule["verbs"]
            for group in rule["apiGroups"]
            for resource in rule["resources"]
        }
        for rule in status["nonResourceRules"]:
            rights |= {(verb, one) for verb in rule["verbs"] for one in rule["nonResourceURLs"]}
        assert rights == EVERYONE, account


def test_kubectl_lists_no_resource_of_the_cluster(release, cluster):
    """The same, as an operator sees it."""
    user = f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}"
    table = cluster.kubectl("auth", "can-i", "--list", "--namespace", NAMESPACE, "--as", user)
    resources = [line.split()[0] for line in table.splitlines()[1:] if not line.startswith(" ")]
    assert sorted(resources) == sorted(one for verb, one in EVERYONE if verb == "create")


@pytest.mark.parametrize("path", ["pods", "secrets", "configmaps", "serviceaccounts", "services"])
def test_token_of_the_webhook_reads_nothing(path, release, cluster):
    own = token(cluster, ACCOUNT)
    assert cluster.call("GET", f"{NAMESPACES}/{NAMESPACE}/{path}", token=own)[0] == 403
    assert cluster.call("GET", f"/api/v1/{path}", token=own)[0] == 403


def test_pods_of_the_chart_have_no_token(release, cluster):
    """Pods made of each template of the chart, with all that it renders, get no token from the server."""
    values = [chart.VALUES["everything"]]
    objects = chart.render("1.25", values, ['injection.mode="webhook"'], release=NAME, namespace=NAMESPACE)
    found = list(chart.pod_specs(objects))
    assert {owner["kind"] for owner, _ in found} == {"Deployment", "CronJob", "Pod"}
    for owner, spec in found:
        # Of all accounts, the one without the chart's own setting: the pod must refuse the token itself.
        spec = {**spec, "serviceAccountName": "default"}
        spec.pop("priorityClassName", None)
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": owner["kind"].lower()}, "spec": spec}
        status, created = cluster.create(NAMESPACE, pod, dry=True)
        assert status == 201, created
        assert "kube-api-access" not in str(created["spec"]), owner["metadata"]["name"]


def test_account_itself_refuses_the_token(release, cluster):
    pod = pods.vllm("plain", serviceAccountName=ACCOUNT)
    status, created = cluster.create(NAMESPACE, pod, dry=True)
    assert status == 201 and "kube-api-access" not in str(created["spec"])


def test_sidecar_has_no_token_of_its_pod(webhook, cluster, namespace):
    """The server mounts the token into each container that mounts nothing at its path, also into added ones."""
    _, created = cluster.create(namespace, pods.vllm("token"))
    path = "/var/run/secrets/kubernetes.io/serviceaccount"
    [model] = [one for one in created["spec"]["containers"] if one["name"] == "vllm"]
    for container, volume in ((model, "kube-api-access-"), (pods.sidecars(created)[0], "tokenmeter-state")):
        [mount] = [one for one in container["volumeMounts"] if one["mountPath"] == path]
        assert mount["name"].startswith(volume), container["name"]

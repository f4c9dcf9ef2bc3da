{{/*
A value of the injection config as a CEL literal. Values of maps and lists are wrapped in dyn(): Kubernetes requires
literals of one type.
*/}}
{{- define "tokenmeter.policy.literal" -}}
{{- if kindIs "map" . -}}
{{- $map := . -}}
{ {{- range $i, $key := keys . | sortAlpha }}{{ if $i }}, {{ end -}}
{{ $key | toJson }}: dyn({{ include "tokenmeter.policy.literal" (get $map $key) }})
{{- end -}} }
{{- else if kindIs "slice" . -}}
[ {{- range $i, $item := . }}{{ if $i }}, {{ end }}dyn({{ include "tokenmeter.policy.literal" $item }}){{ end -}} ]
{{- else if and (kindIs "float64" .) (eq (floor .) .) -}}
{{ printf "%.0f" . }}
{{- else -}}
{{ . | toJson }}
{{- end -}}
{{- end }}

{{/*
The variables by which a policy finds the model's container and its server, and reads its ports. They expect
variables.spec, the pod's spec, and variables.metadata, its metadata.
*/}}
{{- define "tokenmeter.policy.variables" -}}
{{- $config := include "tokenmeter.injection" . | fromYaml -}}
{{- $admin := include "tokenmeter.policy.admin" . -}}
- name: servers
  expression: >-
    {{ include "tokenmeter.policy.literal" $config.servers }}
- name: annotations
  expression: >-
    variables.metadata.?annotations.orValue({})
- name: labels
  expression: >-
    variables.metadata.?labels.orValue({})
# Annotations; the text of an absent one is empty.
- name: portAnnotation
  expression: >-
    variables.annotations[?"config.tokenmeter.io/port"].orValue("")
- name: serverPortAnnotation
  expression: >-
    variables.annotations[?"config.tokenmeter.io/server-port"].orValue("")
- name: loopback
  expression: >-
    variables.annotations[?"config.tokenmeter.io/loopback"].orValue("") == "true"
- name: annotationsAreValid
  expression: >-
    variables.annotations[?"config.tokenmeter.io/mode"].orValue("takeover")
      in ["takeover", "named-port", "redirect"]
    && (!("config.tokenmeter.io/port" in variables.annotations)
      || variables.portAnnotation.matches("^[0-9]{1,5}$")
        && int(variables.portAnnotation) >= 1 && int(variables.portAnnotation) <= 65535)
    && (!("config.tokenmeter.io/server-port" in variables.annotations)
      || variables.serverPortAnnotation.matches("^[0-9]{1,5}$")
        && int(variables.serverPortAnnotation) >= 1024 && int(variables.serverPortAnnotation) <= 65535)
    && variables.annotations[?"config.tokenmeter.io/loopback"].orValue("true") in ["true", "false"]
    && variables.annotations[?"config.tokenmeter.io/grace-seconds"].orValue("0").matches("^[0-9]{1,5}$")
    && int(variables.annotations[?"config.tokenmeter.io/grace-seconds"].orValue("0")) <= 86400
    && variables.annotations[?"config.tokenmeter.io/usage"].orValue("inject") in ["inject", "continuous", "observe"]
    && variables.annotations[?"config.tokenmeter.io/role"].orValue("auto") in ["whole", "prefill", "decode", "auto"]
    && variables.annotations[?"config.tokenmeter.io/kind"].orValue("auto") in ["auto", "vllm", "tgi", "llama_cpp",
      "sglang", "ollama", "tensorrt_llm", "triton", "lmdeploy", "mistral_rs", "dynamo", "openai", "anthropic",
      "gemini", "azure_openai", "openrouter"]
    && ["prices", "tenants"].all(k,
      variables.annotations[?"config.tokenmeter.io/" + k].orValue("x")
        .matches("^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
      && size(variables.annotations[?"config.tokenmeter.io/" + k].orValue("x")) <= 253)
    && variables.annotations[?"config.tokenmeter.io/image"].orValue("x").matches("^[^\\s]+(\\s+[^\\s]+)*$")
# The words of each container's command line, and the last parts of those before the first --flag, one a line: a
# word with spaces is a script, of which no line counts.
- name: words
  expression: >-
    variables.spec.containers.map(c, (c.?command.orValue([]) + c.?args.orValue([])).map(w, string(w)))
- name: firstFlags
  expression: >-
    variables.words.map(line, (line.map(w, w.startsWith("--") && size(w) > 2) + [true]).indexOf(true))
- name: heads
  expression: >-
    lists.range(size(variables.words)).map(i, "\n" + variables.words[i].slice(0, variables.firstFlags[i])
      .map(w, [" ", "\t", "\n"].exists(s, w.contains(s)) ? "" : w.substring(w.lastIndexOf("/") + 1))
      .join("\n") + "\n")
# The images without digest: path and name with a leading slash, and tag.
- name: images
  expression: >-
    variables.spec.containers.map(c, string(c.?image.orValue("")).split("@")[0])
- name: imageNames
  expression: >-
    variables.images.map(i, "/" + i.substring(0, i.lastIndexOf("/") + 1)
      + i.substring(i.lastIndexOf("/") + 1).split(":")[0])
- name: imageTags
  expression: >-
    variables.images.map(i, i.substring(i.lastIndexOf("/") + 1).contains(":")
      ? i.substring(i.lastIndexOf("/") + 1).substring(i.substring(i.lastIndexOf("/") + 1).indexOf(":") + 1) : "")
# The last parts of the names, between dashes.
- name: imageBases
  expression: >-
    variables.imageNames.map(n, "-" + n.substring(n.lastIndexOf("/") + 1).replace("_", "-") + "-")
# The index of each container's server, or -1.
- name: known
  expression: >-
    lists.range(size(variables.heads)).map(i, variables.servers.map(s,
      s.words.exists(p, variables.heads[i].contains("\n" + p.replace(" ", "\n") + "\n"))
      || size(variables.spec.containers[i].?command.orValue([])) == 0 && s.images.exists(k,
        variables.imageNames[i].endsWith("/" + k.split(":")[0])
        && variables.imageTags[i].startsWith(k.contains(":") ? k.substring(k.indexOf(":") + 1) : ""))
      || size(variables.spec.containers[i].?command.orValue([])) == 0
        && (size(variables.words[i]) == 0 ? s.port_env != "" : variables.words[i][0].startsWith("-"))
        && s.vendor_images.exists(k, variables.imageBases[i].contains("-" + k.split(":")[0] + "-")
          && variables.imageBases[i].replace("-" + k.split(":")[0] + "-", "-", 1)
            .matches("^-((?:{{ $config.platforms | join "|" }})?[0-9]*[-.])*$")
          && variables.imageTags[i].startsWith(k.contains(":") ? k.substring(k.indexOf(":") + 1) : ""))
    ).indexOf(true))
- name: candidates
  expression: >-
    lists.range(size(variables.known)).filter(i, !("config.tokenmeter.io/container" in variables.annotations)
      || variables.spec.containers[i].name == variables.annotations["config.tokenmeter.io/container"])
- name: found
  expression: >-
    variables.candidates.filter(i, variables.known[i] >= 0)
- name: isScripted
  expression: >-
    variables.candidates.exists(i, variables.known[i] < 0
      && variables.words[i].exists(w, w.substring(w.lastIndexOf("/") + 1) in ["sh", "bash", "ash", "dash", "zsh"])
      && variables.servers.exists(s, s.words.exists(p, variables.words[i].exists(w, w.contains(p)))))
# The model's container: variables below need exactly one.
- name: index
  expression: >-
    size(variables.found) == 1 && !variables.isScripted ? variables.found[0] : -1
- name: container
  expression: >-
    variables.spec.containers[variables.index]
- name: server
  expression: >-
    variables.servers[variables.known[variables.index]]
- name: line
  expression: >-
    variables.words[variables.index]
# What precedes a value of the port and host flags in its own word: --port=, or -p of -p8080.
- name: portPrefixes
  expression: >-
    variables.line.map(w, w.contains("=") && w.split("=")[0] in variables.server.port_flags ? w.split("=")[0] + "="
      : size(w) > 2 && w.substring(0, 2) in variables.server.port_flags ? w.substring(0, 2) : "")
- name: hostPrefixes
  expression: >-
    variables.line.map(w, w.contains("=") && w.split("=")[0] in variables.server.host_flags ? w.split("=")[0] + "="
      : "")
# Where the values of the port and host flags stand.
- name: portAt
  expression: >-
    lists.range(size(variables.line)).filter(i, variables.portPrefixes[i] != ""
      || i > 0 && variables.line[i - 1] in variables.server.port_flags)
- name: hostAt
  expression: >-
    lists.range(size(variables.line)).filter(i, variables.hostPrefixes[i] != ""
      || i > 0 && variables.line[i - 1] in variables.server.host_flags)
- name: host
  expression: >-
    variables.hostAt.map(i, variables.line[i].substring(size(variables.hostPrefixes[i])))
# A rank that is a reference may be 0 in the pod that gets the requests.
- name: ranks
  expression: >-
    lists.range(size(variables.line)).filter(i, variables.line[i].contains("=")
        && variables.line[i].split("=")[0] in variables.server.rank_flags
      || i > 0 && variables.line[i - 1] in variables.server.rank_flags)
      .map(i, variables.line[i].split("=")[0] in variables.server.rank_flags
        ? variables.line[i].substring(variables.line[i].indexOf("=") + 1) : variables.line[i])
- name: isElsewhere
  expression: >-
    variables.line.exists(w, w.split("=")[0] in variables.server.elsewhere_flags
      || size(w) > 2 && w.substring(0, 2) in variables.server.elsewhere_flags)
    || size(variables.ranks) > 0 && variables.ranks[size(variables.ranks) - 1].matches("^[0-9]*[1-9][0-9]*$")
- name: loopbackIsPossible
  expression: >-
    (size(variables.server.host_flags) > 0 || variables.server.port_env != "")
    && (variables.server.takes_new_flags || size(variables.hostAt) > 0)
- name: hostIsReachable
  expression: >-
    variables.loopback || size(variables.host) == 0 || variables.host[size(variables.host) - 1]
      in ["", "0.0.0.0", "127.0.0.1", "localhost", "::", "[::]"]
# The port variable.
- name: env
  expression: >-
    variables.container.?env.orValue([])
- name: envAt
  expression: >-
    lists.range(size(variables.env)).filter(i, variables.server.port_env != ""
      && variables.env[i].name == variables.server.port_env)
- name: envText
  expression: >-
    size(variables.envAt) == 0 ? "" : variables.env[variables.envAt[size(variables.envAt) - 1]].?value.orValue("")
- name: envHost
  expression: >-
    variables.server.port_env_form == "port" ? "" : variables.envText.contains(":")
      ? variables.envText.substring(0, variables.envText.lastIndexOf(":")) : variables.envText
- name: envPort
  expression: >-
    variables.server.port_env_form == "port" ? variables.envText : variables.envText.contains(":")
      ? variables.envText.substring(variables.envText.lastIndexOf(":") + 1) : ""
- name: envIsReadable
  expression: >-
    size(variables.envAt) == 0 || !has(variables.env[variables.envAt[size(variables.envAt) - 1]].valueFrom)
    && (variables.loopback || variables.envHost in ["", "0.0.0.0", "127.0.0.1", "localhost", "::", "[::]"])
# The server's own port as text: by flag, by variable, by default; not a number where it cannot be read.
- name: ownText
  expression: >-
    size(variables.portAt) > 0
      ? variables.line[variables.portAt[size(variables.portAt) - 1]].substring(
        size(variables.portPrefixes[variables.portAt[size(variables.portAt) - 1]]))
    : variables.line.exists(w, w in variables.server.port_flags) || !variables.envIsReadable ? "unknown"
    : variables.envPort != "" ? variables.envPort
    : variables.portAnnotation == "" && (variables.line.exists(w, w.split("=")[0] in variables.server.file_flags
        || size(w) > 2 && w.substring(0, 2) in variables.server.file_flags)
      || size(variables.container.?ports.orValue([])) > 0
        && !variables.container.ports.exists(p, p.containerPort == variables.server.port)
      || size(variables.container.?ports.orValue([])) == 0 && variables.server.port_env != ""
        && size(variables.envAt) == 0 && size(variables.container.?envFrom.orValue([])) > 0) ? "unknown"
    : variables.server.takes_new_flags ? string(variables.server.port) : "unknown"
- name: own
  expression: >-
    variables.ownText.matches("^[0-9]{1,5}$") && int(variables.ownText) >= 1 && int(variables.ownText) <= 65535
      ? int(variables.ownText) : -1
- name: public
  expression: >-
    variables.portAnnotation == "" ? variables.own : int(variables.portAnnotation)
- name: portNames
  expression: >-
    variables.container.?ports.orValue([])
      .filter(p, has(p.name) && p.containerPort in [variables.own, variables.public]).map(p, p.name)
# The ports of the model's container, and of the others.
- name: modelPorts
  expression: >-
    variables.container.?ports.orValue([]).map(p, p.containerPort)
- name: otherPorts
  expression: >-
    (lists.range(size(variables.spec.containers)).filter(i, i != variables.index)
      .map(i, variables.spec.containers[i]) + variables.spec.?initContainers.orValue([]))
      .map(c, c.?ports.orValue([]).map(p, p.containerPort)).flatten()
- name: hasConflict
  expression: >-
    {{ $admin }} in [variables.own, variables.public] + variables.modelPorts + variables.otherPorts
    || variables.public != variables.own && variables.public in variables.otherPorts
# The first free port for the server, or none.
- name: taken
  expression: >-
    [variables.own, variables.public, {{ $admin }}] + variables.modelPorts + variables.otherPorts
- name: gained
  expression: >-
    (variables.serverPortAnnotation == "" ? lists.range(10).map(i, i + {{ int $config.server_port }})
      : [int(variables.serverPortAnnotation)]).filter(p, !(p in variables.taken))
# The places of probes and hooks.
- name: places
  expression: >-
    [variables.container.?startupProbe.orValue({}), variables.container.?readinessProbe.orValue({}),
      variables.container.?livenessProbe.orValue({}), variables.container.?lifecycle.?postStart.orValue({}),
      variables.container.?lifecycle.?preStop.orValue({})]
- name: speaksTls
  expression: >-
    variables.line.exists(w, w.split("=")[0] in variables.server.tls_flags)
    || variables.places.exists(p, p.?httpGet.?scheme.orValue("") == "HTTPS" && "port" in p.httpGet
      && (type(p.httpGet.port) == int ? p.httpGet.port in [variables.own, variables.public]
        : p.httpGet.port in variables.portNames))
{{- end }}

{{/* The admin port of the injected container. */}}
{{- define "tokenmeter.policy.admin" -}}
{{- $admin := 9464 -}}
{{- range (include "tokenmeter.injection" . | fromYaml).container.ports -}}
{{- if eq .name "tm-admin" }}{{ $admin = int .containerPort }}{{ end -}}
{{- end -}}
{{ $admin }}
{{- end }}

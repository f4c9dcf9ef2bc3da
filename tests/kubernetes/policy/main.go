// Evaluates admission policies as kube-apiserver does, with its own packages: the policies of the file FILE on the
// AdmissionReviews of stdin, one JSON object a line. Each line of output is the object as the mutations leave it, and
// the messages of failed validations; or an error, such as an evaluation beyond the server's bounds of cost.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/client-go/kubernetes/scheme"
)

// The CEL environment of a server that may be rolled back to the version before: new policies are checked with it.
var environments = environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())

type policies struct {
	mutating   []mutating
	validating []validatingPolicy
}

type mutating struct {
	compiler *plugincel.CompositedCompiler
	matcher  matchconditions.Matcher
	patchers []patch.Patcher
}

type validatingPolicy struct {
	compiler  *plugincel.CompositedCompiler
	validator validating.Validator
}

type result struct {
	Object   json.RawMessage `json:"object,omitempty"`
	Warnings []string        `json:"warnings,omitempty"`
	Error    string          `json:"error,omitempty"`
}

func main() {
	if len(os.Args) != 2 {
		fail(errors.New("usage: policy FILE < reviews"))
	}
	loaded, err := load(os.Args[1])
	if err != nil {
		fail(err)
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		answer := result{}
		if err := loaded.evaluate(lines.Bytes(), &answer); err != nil {
			answer.Error = err.Error()
		}
		if err := json.NewEncoder(os.Stdout).Encode(answer); err != nil {
			fail(err)
		}
	}
	if err := lines.Err(); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "policy:", err)
	os.Exit(1)
}

// Reads the policies of a YAML file; other objects in it are ignored.
func load(path string) (*policies, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	found := &policies{}
	documents := yaml.NewYAMLReader(bufio.NewReader(file))
	for {
		document, err := documents.Read()
		if err != nil {
			return found, nil
		}
		var kind metav1.TypeMeta
		if err := yaml.Unmarshal(document, &kind); err != nil {
			return nil, err
		}
		switch kind.Kind {
		case "MutatingAdmissionPolicy":
			var policy admissionregistrationv1.MutatingAdmissionPolicy
			if err := yaml.UnmarshalStrict(document, &policy); err != nil {
				return nil, err
			}
			compiled, err := compileMutating(&policy)
			if err != nil {
				return nil, err
			}
			found.mutating = append(found.mutating, *compiled)
		case "ValidatingAdmissionPolicy":
			var policy admissionregistrationv1.ValidatingAdmissionPolicy
			if err := yaml.UnmarshalStrict(document, &policy); err != nil {
				return nil, err
			}
			compiled, err := compileValidating(&policy)
			if err != nil {
				return nil, err
			}
			found.validating = append(found.validating, *compiled)
		}
	}
}

// Compiles variables and match conditions, and fails on the first error: a server would reject the policy.
func compile(
	name string,
	variables []admissionregistrationv1.Variable,
	conditions []admissionregistrationv1.MatchCondition,
	failure *admissionregistrationv1.FailurePolicyType,
) (*plugincel.CompositedCompiler, matchconditions.Matcher, error) {
	options := plugincel.OptionalVariableDeclarations{HasAuthorizer: true}
	compiler, err := plugincel.NewCompositedCompiler(environments)
	if err != nil {
		return nil, nil, err
	}
	for _, v := range variables {
		compiled := compiler.CompileAndStoreVariable(
			&validating.Variable{Name: v.Name, Expression: v.Expression}, options, environment.NewExpressions)
		if compiled.Error != nil {
			return nil, nil, fmt.Errorf("%s: variable %s: %s", name, v.Name, compiled.Error)
		}
	}
	accessors := make([]plugincel.ExpressionAccessor, len(conditions))
	for i := range conditions {
		accessors[i] = (*matchconditions.MatchCondition)(&conditions[i])
	}
	evaluator := compiler.CompileCondition(accessors, options, environment.NewExpressions)
	if errs := evaluator.CompilationErrors(); len(errs) > 0 {
		return nil, nil, fmt.Errorf("%s: match conditions: %w", name, errors.Join(errs...))
	}
	return compiler, matchconditions.NewMatcher(evaluator, failure, "policy", "admit", name), nil
}

func compileMutating(policy *admissionregistrationv1.MutatingAdmissionPolicy) (*mutating, error) {
	spec := &policy.Spec
	compiler, matcher, err := compile(policy.Name, spec.Variables, spec.MatchConditions, spec.FailurePolicy)
	if err != nil {
		return nil, err
	}
	compiled := &mutating{compiler: compiler, matcher: matcher}
	options := plugincel.OptionalVariableDeclarations{HasAuthorizer: true, HasPatchTypes: true}
	for _, m := range spec.Mutations {
		evaluator := compiler.CompileMutatingEvaluator(
			&patch.JSONPatchCondition{Expression: m.JSONPatch.Expression}, options, environment.NewExpressions)
		if errs := evaluator.CompilationErrors(); len(errs) > 0 {
			return nil, fmt.Errorf("%s: mutation: %w", policy.Name, errors.Join(errs...))
		}
		compiled.patchers = append(compiled.patchers, patch.NewJSONPatcher(evaluator))
	}
	return compiled, nil
}

func compileValidating(policy *admissionregistrationv1.ValidatingAdmissionPolicy) (*validatingPolicy, error) {
	spec := &policy.Spec
	compiler, matcher, err := compile(policy.Name, spec.Variables, spec.MatchConditions, spec.FailurePolicy)
	if err != nil {
		return nil, err
	}
	options := plugincel.OptionalVariableDeclarations{HasAuthorizer: true}
	var conditions, messages []plugincel.ExpressionAccessor
	for _, v := range spec.Validations {
		conditions = append(conditions, &validating.ValidationCondition{Expression: v.Expression, Message: v.Message})
		messages = append(messages, &validating.MessageExpressionCondition{MessageExpression: v.MessageExpression})
	}
	condition := compiler.CompileCondition(conditions, options, environment.NewExpressions)
	message := compiler.CompileCondition(messages, options, environment.NewExpressions)
	annotations := compiler.CompileCondition(nil, options, environment.NewExpressions)
	if errs := append(condition.CompilationErrors(), message.CompilationErrors()...); len(errs) > 0 {
		return nil, fmt.Errorf("%s: validations: %w", policy.Name, errors.Join(errs...))
	}
	validator := validating.NewValidator(condition, matcher, annotations, message, spec.FailurePolicy, nil)
	return &validatingPolicy{compiler: compiler, validator: validator}, nil
}

// Evaluates all policies on one review: mutations first, validations on what they leave.
func (p *policies) evaluate(line []byte, answer *result) error {
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(line, &review); err != nil {
		return err
	}
	request := review.Request
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode(request.Object.Raw, nil, nil)
	if err != nil {
		return err
	}
	kind := schema.GroupVersionKind(request.Kind)
	resource := schema.GroupVersionResource(request.Resource)
	attributes := &admission.VersionedAttributes{
		Attributes: admission.NewAttributesRecord(object, nil, kind, request.Namespace, request.Name, resource, "",
			admission.Create, &metav1.CreateOptions{}, false, nil),
		VersionedObject: object,
		VersionedKind:   kind,
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: request.Namespace}}
	for i := range p.mutating {
		if err := p.mutating[i].admit(attributes, resource, namespace); err != nil {
			return err
		}
	}
	for i := range p.validating {
		policy := &p.validating[i]
		ctx := policy.compiler.CreateContext(context.Background())
		outcome := policy.validator.Validate(
			ctx, resource, attributes, nil, namespace, celconfig.RuntimeCELCostBudget, nil)
		for _, decision := range outcome.Decisions {
			if decision.Action != validating.ActionAdmit {
				answer.Warnings = append(answer.Warnings, decision.Message)
			}
		}
	}
	answer.Object, err = json.Marshal(attributes.VersionedObject)
	return err
}

func (m *mutating) admit(
	attributes *admission.VersionedAttributes, resource schema.GroupVersionResource, namespace *corev1.Namespace,
) error {
	ctx := m.compiler.CreateContext(context.Background())
	matches := m.matcher.Match(ctx, attributes, nil, nil)
	if matches.Error != nil {
		return matches.Error
	}
	if !matches.Matches {
		return nil
	}
	for _, patcher := range m.patchers {
		ctx := m.compiler.CreateContext(context.Background())
		changed, err := patcher.Patch(ctx, patch.Request{
			MatchedResource:     resource,
			VersionedAttributes: attributes,
			ObjectInterfaces:    admission.NewObjectInterfacesFromScheme(scheme.Scheme),
			Namespace:           namespace,
		}, celconfig.RuntimeCELCostBudget)
		if err != nil {
			return err
		}
		attributes.VersionedObject = changed
	}
	return nil
}

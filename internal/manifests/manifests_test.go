package manifests

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/yaml"
	strict "sigs.k8s.io/yaml"
)

const root = "../.."

// manifest is a file.
type manifest struct {
	name        string
	deployments []apps.Deployment
	services    []core.Service
}

// read reads a file as Kubernetes would with strict validation: no unknown field,
// none twice, none of another type.
func read(path string) (m manifest, err error) {
	m.name = filepath.Base(path)
	text, err := os.ReadFile(path)
	if err != nil {
		return m, err
	}
	docs := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			return m, nil
		}
		if err != nil {
			return m, err
		}
		var kind meta.TypeMeta
		if err := strict.Unmarshal(doc, &kind); err != nil {
			return m, err
		}
		switch kind.APIVersion + " " + kind.Kind {
		case "apps/v1 Deployment":
			var d apps.Deployment
			if err := strict.UnmarshalStrict(doc, &d); err != nil {
				return m, fmt.Errorf("%s: %w", m.name, err)
			}
			m.deployments = append(m.deployments, d)
		case "v1 Service":
			var s core.Service
			if err := strict.UnmarshalStrict(doc, &s); err != nil {
				return m, fmt.Errorf("%s: %w", m.name, err)
			}
			m.services = append(m.services, s)
		default:
			return m, fmt.Errorf("%s: %q is not checked here", m.name, kind.Kind)
		}
	}
}

func all(t *testing.T) (list []manifest) {
	t.Helper()
	paths, err := filepath.Glob(root + "/deploy/kubernetes/*.yaml")
	if err != nil || len(paths) < 5 {
		t.Fatalf("%v: %d manifests", err, len(paths))
	}
	for _, p := range paths {
		m, err := read(p)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, m)
	}
	return list
}

// help is what the mocker says it knows, without what is not built yet.
var help = sync.OnceValues(func() (string, error) {
	cmd := exec.Command("go", "run", "./cmd/mocker", "--help")
	cmd.Dir = root
	out, err := cmd.Output()
	text := string(out)
	if i := strings.Index(text, "\nNot built yet"); i >= 0 {
		text = text[:i]
	}
	return text, err
})

// knows reports whether the help has a word.
func knows(t *testing.T, word string) bool {
	t.Helper()
	text, err := help()
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`(^|[\s\[,])` + regexp.QuoteMeta(word) + `($|[\s\],;:.])`).MatchString(text)
}

// What is in each file fits together.
func TestManifests(t *testing.T) {
	for _, m := range all(t) {
		for i := range m.deployments {
			for _, fault := range faults(&m.deployments[i]) {
				t.Errorf("%s: %s: %s", m.name, m.deployments[i].Name, fault)
			}
		}
		for _, s := range m.services {
			if !m.serves(&s) {
				t.Errorf("%s: no pod has the labels and ports of the service %s", m.name, s.Name)
			}
		}
	}
}

// faults are what Kubernetes, or whoever runs it, would complain of.
func faults(d *apps.Deployment) (list []string) {
	complain := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	pod := &d.Spec.Template.Spec
	if d.Spec.Selector == nil || !subset(d.Spec.Selector.MatchLabels, d.Spec.Template.Labels) {
		complain("its selector does not match its pods")
	}
	if s := pod.SecurityContext; s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot || s.RunAsUser == nil || *s.RunAsUser == 0 || s.SeccompProfile == nil {
		complain("it may run as root or without seccomp")
	}
	volumes := map[string]bool{}
	for _, v := range pod.Volumes {
		volumes[v.Name] = true
	}
	for i := range pod.Containers {
		c := &pod.Containers[i]
		if s := c.SecurityContext; s == nil || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem || s.Capabilities == nil || !slices.Contains(s.Capabilities.Drop, "ALL") {
			complain("%s may do too much", c.Name)
		}
		if c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() || c.Resources.Limits.Memory().IsZero() || c.Resources.Limits.Memory().Cmp(*c.Resources.Requests.Memory()) < 0 {
			complain("%s does not say what it needs", c.Name)
		}
		if !strings.Contains(c.Image, ":") || strings.HasSuffix(c.Image, ":latest") {
			complain("%s has no version: %s", c.Name, c.Image)
		}
		if c.ReadinessProbe == nil {
			complain("%s has no readiness probe", c.Name)
		}
		for _, p := range []*core.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
			if p != nil && !probes(c, p) {
				complain("%s has a probe of no port", c.Name)
			}
		}
		for _, v := range c.VolumeMounts {
			if !volumes[v.Name] {
				complain("%s mounts %s, which there is not", c.Name, v.Name)
			}
		}
		if mocks(c) {
			list = append(list, drains(pod, c)...)
		}
	}
	return list
}

func mocks(c *core.Container) bool { return strings.HasPrefix(c.Image, "dryserve-mocker:") }

// probes reports whether a probe asks a port that the container has.
func probes(c *core.Container, p *core.Probe) bool {
	switch {
	case p.HTTPGet != nil:
		return strings.HasPrefix(p.HTTPGet.Path, "/") && has(c, p.HTTPGet.Port)
	case p.TCPSocket != nil:
		return has(c, p.TCPSocket.Port)
	}
	return false
}

func has(c *core.Container, port intstr.IntOrString) bool {
	return slices.ContainsFunc(c.Ports, func(p core.ContainerPort) bool { return p.Name == port.StrVal || p.ContainerPort == port.IntVal })
}

// drains checks that a mocker may come to its end, and says how it is.
func drains(pod *core.PodSpec, c *core.Container) (list []string) {
	drain, err := strconv.ParseFloat(flag(c, "drain-timeout"), 64)
	if grace := pod.TerminationGracePeriodSeconds; err != nil || grace == nil || float64(*grace) <= drain {
		list = append(list, fmt.Sprintf("--drain-timeout %v does not end before the pod is killed", drain))
	}
	if c.LivenessProbe == nil || c.LivenessProbe.HTTPGet == nil || c.LivenessProbe.HTTPGet.Path != "/live" || c.ReadinessProbe.HTTPGet == nil || c.ReadinessProbe.HTTPGet.Path != "/health" {
		list = append(list, "/live and /health are not asked")
	}
	if flag(c, "http") != "" {
		return list
	}
	for name, want := range map[string]string{"DYN_SYSTEM_PORT": "9090", "DYN_SYSTEM_HOST": "0.0.0.0", "DYN_SYSTEM_STARTING_HEALTH_STATUS": "ready"} {
		if got := variable(c, name); got != want {
			list = append(list, fmt.Sprintf("%s is %q, want %q: the probes ask there", name, got, want))
		}
	}
	if !slices.ContainsFunc(c.Ports, func(p core.ContainerPort) bool { return p.Name == "system" && p.ContainerPort == 9090 }) {
		list = append(list, "the system port is not 9090")
	}
	return list
}

// flag is the value of --name=value.
func flag(c *core.Container, name string) string {
	for _, a := range c.Args {
		if v, ok := strings.CutPrefix(a, "--"+name+"="); ok {
			return v
		}
	}
	return ""
}

func variable(c *core.Container, name string) string {
	for _, e := range c.Env {
		if e.Name == name {
			return e.Value
		}
	}
	return ""
}

func subset(part, whole map[string]string) bool {
	for k, v := range part {
		if whole[k] != v {
			return false
		}
	}
	return len(part) > 0
}

// serves reports whether pods of the file stand behind a service.
func (m *manifest) serves(s *core.Service) bool {
	for i := range m.deployments {
		template := &m.deployments[i].Spec.Template
		if !subset(s.Spec.Selector, template.Labels) {
			continue
		}
		for _, p := range s.Spec.Ports {
			if !slices.ContainsFunc(template.Spec.Containers, func(c core.Container) bool { return has(&c, p.TargetPort) }) {
				return false
			}
		}
		return len(s.Spec.Ports) > 0
	}
	return false
}

// The mocker knows all flags and variables that it is given.
func TestFlags(t *testing.T) {
	n := 0
	for _, m := range all(t) {
		for _, d := range m.deployments {
			for _, c := range d.Spec.Template.Spec.Containers {
				if !mocks(&c) {
					continue
				}
				n++
				for _, a := range c.Args {
					name, _, ok := strings.Cut(a, "=")
					if !ok || !knows(t, name) {
						t.Errorf("%s: %s is not a flag of the mocker with a value", m.name, a)
					}
				}
				for _, e := range c.Env {
					if e.Name != "POD_IP" && !knows(t, e.Name) {
						t.Errorf("%s: the mocker does not know the variable %s", m.name, e.Name)
					}
				}
			}
		}
	}
	if n < 5 {
		t.Errorf("%d mockers", n)
	}
	if knows(t, "--no-such-flag") || knows(t, "DYN_SYSTEM") || !knows(t, "--num-workers") {
		t.Error("the help is not understood")
	}
}

// The image is built with the Go that the module asks for, and its default
// command is understood.
func TestContainerfile(t *testing.T) {
	text, err := os.ReadFile(root + "/deploy/Containerfile")
	if err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(root + "/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	minor := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindSubmatch(mod)
	if minor == nil || !regexp.MustCompile(`golang:`+string(minor[1])+`\.\d+-`).Match(text) {
		t.Errorf("it is not built with a pinned release of Go %s", minor)
	}
	for _, want := range []string{"FROM scratch AS mocker", "USER 65532:65532", "CGO_ENABLED=0"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("it has no %s", want)
		}
	}
	stages := regexp.MustCompile(`(?m)^FROM .* AS (\w+)`).FindAllSubmatch(text, -1)
	if last := string(stages[len(stages)-1][1]); last != "mocker" {
		t.Errorf("what is built without a target is %s", last)
	}
	for _, f := range regexp.MustCompile(`"(--[a-z-]+)"`).FindAllSubmatch(text, -1) {
		if !knows(t, string(f[1])) {
			t.Errorf("the mocker does not know %s", f[1])
		}
	}
}

// What is wrong is found.
func TestFaults(t *testing.T) {
	path := root + "/deploy/kubernetes/aggregated.yaml"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	whole := string(text)
	change := func(from, to string) (manifest, error) {
		t.Helper()
		changed := strings.ReplaceAll(whole, from, to)
		if changed == whole {
			t.Fatalf("%q is not in the manifest", from)
		}
		file := filepath.Join(t.TempDir(), "m.yaml")
		if err := os.WriteFile(file, []byte(changed), 0o600); err != nil {
			t.Fatal(err)
		}
		return read(file)
	}
	for from, to := range map[string]string{"replicas: 1": "replica: 1", "periodSeconds: 2": `periodSeconds: "2"`, "kind: Service": "kind: Servant"} {
		if _, err := change(from, to); err == nil {
			t.Errorf("%s instead of %s is taken", to, from)
		}
	}
	for from, want := range maps.All(map[string]string{
		"--drain-timeout=120|--drain-timeout=150": "does not end before", "runAsNonRoot: true|runAsNonRoot: false": "as root", "port: system|port: sytem": "probe of no port",
		"{name: model, mountPath|{name: models, mountPath": "mounts models", "memory: 64Mi|memory: 640Mi": "what it needs", "path: /live|path: /alive": "/live and /health",
		"role: worker}\n  template|role: other}\n  template": "does not match", `value: "9090"|value: "9091"`: "DYN_SYSTEM_PORT", "dryserve-mocker:dev|dryserve-mocker:latest": "no version",
	}) {
		a, b, _ := strings.Cut(from, "|")
		m, err := change(a, b)
		if err != nil {
			t.Errorf("%s: %v", b, err)
			continue
		}
		var found []string
		for i := range m.deployments {
			found = append(found, faults(&m.deployments[i])...)
		}
		if !strings.Contains(strings.Join(found, "\n"), want) {
			t.Errorf("%s: found %q", b, found)
		}
	}
	m, err := change("targetPort: http", "targetPort: htp")
	if err != nil || m.serves(&m.services[0]) {
		t.Errorf("a service without a port passes: %v", err)
	}
}

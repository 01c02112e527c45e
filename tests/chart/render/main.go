// Renders a chart as `helm template` does, as far as the chart of deploy/chart uses it. It is a stand-in for Helm and not Helm:
// no dependencies between charts, no values of a parent, no hooks that run, no look-ups in a cluster. It is built of Debian's
// packages alone, so that the chart is tested on machines that have no Helm.
//
//	render CHART --release NAME --namespace NAME [--values FILE]... [--set a.b=c]... [--api-version V]... [--json | --notes]
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"gopkg.in/yaml.v3"
)

// installOrder is Helm's: what others need comes first. Kinds that are not named come last.
var installOrder = []string{
	"PriorityClass", "Namespace", "NetworkPolicy", "ResourceQuota", "LimitRange", "PodDisruptionBudget", "ServiceAccount",
	"Secret", "ConfigMap", "StorageClass", "PersistentVolume", "PersistentVolumeClaim", "CustomResourceDefinition",
	"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "Service", "DaemonSet", "Pod", "ReplicaSet", "Deployment",
	"HorizontalPodAutoscaler", "StatefulSet", "Job", "CronJob", "IngressClass", "Ingress", "APIService",
	"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration",
}

type object = map[string]interface{}

type options struct {
	chart, release, namespace string
	values, sets, versions    []string
	asJSON, notes             bool
}

type manifest struct {
	path string
	body object
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	asked, err := parse(arguments)
	if err != nil {
		return err
	}
	values, chart, err := readValues(asked)
	if err != nil {
		return err
	}
	texts, err := execute(asked, values, chart)
	if err != nil {
		return err
	}
	if asked.notes {
		fmt.Print(texts[fmt.Sprint(chart["name"], "/templates/NOTES.txt")])
		return nil
	}
	manifests, err := split(texts)
	if err != nil {
		return err
	}
	return show(manifests, asked.asJSON)
}

func parse(arguments []string) (options, error) {
	asked := options{release: "headroom", namespace: "default"}
	for at := 0; at < len(arguments); at++ {
		name := arguments[at]
		switch name {
		case "--json":
			asked.asJSON = true
			continue
		case "--notes":
			asked.notes = true
			continue
		}
		if !strings.HasPrefix(name, "--") {
			asked.chart = name
			continue
		}
		at++
		if at == len(arguments) {
			return asked, fmt.Errorf("%s asks for a value", name)
		}
		value := arguments[at]
		switch name {
		case "--release":
			asked.release = value
		case "--namespace":
			asked.namespace = value
		case "--values":
			asked.values = append(asked.values, value)
		case "--set":
			asked.sets = append(asked.sets, value)
		case "--api-version":
			asked.versions = append(asked.versions, value)
		default:
			return asked, fmt.Errorf("%s is not known", name)
		}
	}
	if asked.chart == "" {
		return asked, errors.New("name the folder of the chart")
	}
	return asked, nil
}

func readYAML(path string) (object, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	read := object{}
	if err := yaml.Unmarshal(text, &read); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return floats(read).(object), nil
}

// floats makes of numbers what Helm makes of those in files, so that a template that would print 1e+06 prints it here, too.
func floats(value interface{}) interface{} {
	switch value := value.(type) {
	case object:
		for key, inner := range value {
			value[key] = floats(inner)
		}
	case []interface{}:
		for at, inner := range value {
			value[at] = floats(inner)
		}
	case int:
		return float64(value)
	}
	return value
}

// readValues lays the files over the chart's own values, and the single ones over these.
func readValues(asked options) (object, object, error) {
	chart, err := readYAML(filepath.Join(asked.chart, "Chart.yaml"))
	if err != nil {
		return nil, nil, err
	}
	values, err := readYAML(filepath.Join(asked.chart, "values.yaml"))
	if err != nil {
		return nil, nil, err
	}
	for _, file := range asked.values {
		over, err := readYAML(file)
		if err != nil {
			return nil, nil, err
		}
		lay(values, over)
	}
	for _, set := range asked.sets {
		if err := assign(values, set); err != nil {
			return nil, nil, err
		}
	}
	return values, chart, nil
}

func lay(under, over object) {
	for key, value := range over {
		deeper, isObject := value.(object)
		below, wasObject := under[key].(object)
		switch {
		// As with Helm, null takes a default away.
		case value == nil:
			delete(under, key)
		case isObject && wasObject:
			lay(below, deeper)
		default:
			under[key] = value
		}
	}
}

func assign(values object, set string) error {
	path, text, found := strings.Cut(set, "=")
	if !found {
		return fmt.Errorf("--set %s: write KEY=VALUE", set)
	}
	keys := strings.Split(path, ".")
	at := values
	for _, key := range keys[:len(keys)-1] {
		next, isObject := at[key].(object)
		if !isObject {
			next = object{}
			at[key] = next
		}
		at = next
	}
	at[keys[len(keys)-1]] = scalar(text)
	return nil
}

// scalar knows what --set knows: true, false, null and whole numbers; all else is text.
func scalar(text string) interface{} {
	switch text {
	case "true":
		return true
	case "false":
		return false
	case "null":
		return nil
	}
	if number, err := strconv.Atoi(text); err == nil {
		return number
	}
	return text
}

func execute(asked options, values, chart object) (map[string]string, error) {
	root := template.New("chart").Option("missingkey=zero")
	root.Funcs(functions(root))
	var names []string
	err := filepath.Walk(filepath.Join(asked.chart, "templates"), func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		below, err := filepath.Rel(asked.chart, path)
		if err != nil {
			return err
		}
		// As Helm calls them: by the name of the chart, wherever it lies.
		name := fmt.Sprint(chart["name"], "/", filepath.ToSlash(below))
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		names = append(names, name)
		_, err = root.New(name).Parse(string(text))
		return err
	})
	if err != nil {
		return nil, err
	}
	texts := map[string]string{}
	for _, name := range names {
		if strings.HasPrefix(filepath.Base(name), "_") {
			continue
		}
		var out bytes.Buffer
		if err := root.ExecuteTemplate(&out, name, context(asked, values, chart, name)); err != nil {
			return nil, err
		}
		// What Helm does: a value that is not there is printed by Go as this.
		texts[name] = strings.ReplaceAll(out.String(), "<no value>", "")
	}
	return texts, nil
}

func context(asked options, values, chart object, name string) object {
	// Templates write .Chart.Name, the file has name.
	described := object{}
	for key, value := range chart {
		described[strings.ToUpper(key[:1])+key[1:]] = value
	}
	return object{
		"Values": values,
		"Chart":  described,
		"Release": object{
			"Name": asked.release, "Namespace": asked.namespace, "Service": "Helm",
			"IsInstall": true, "IsUpgrade": false, "Revision": 1,
		},
		"Capabilities": object{
			"APIVersions": versions(asked.versions),
			"KubeVersion": object{"Version": "v1.34.0", "Major": "1", "Minor": "34"},
		},
		"Files":    files{asked.chart},
		"Template": object{"Name": name, "BasePath": fmt.Sprint(chart["name"], "/templates")},
	}
}

type versions []string

func (known versions) Has(version string) bool {
	for _, one := range known {
		if one == version {
			return true
		}
	}
	return false
}

type files struct{ folder string }

func (from files) Get(name string) string {
	text, err := os.ReadFile(filepath.Join(from.folder, name))
	if err != nil {
		return ""
	}
	return string(text)
}

func functions(root *template.Template) template.FuncMap {
	known := sprig.TxtFuncMap()
	// Helm takes them away: a chart reads nothing of the machine.
	delete(known, "env")
	delete(known, "expandenv")
	known["include"] = func(name string, data interface{}) (string, error) {
		var out strings.Builder
		err := root.ExecuteTemplate(&out, name, data)
		return out.String(), err
	}
	known["tpl"] = func(text string, data interface{}) (string, error) {
		clone, err := root.Clone()
		if err != nil {
			return "", err
		}
		parsed, err := clone.New("tpl").Parse(text)
		if err != nil {
			return "", err
		}
		var out strings.Builder
		err = parsed.Execute(&out, data)
		return out.String(), err
	}
	known["required"] = func(message string, value interface{}) (interface{}, error) {
		if text, isText := value.(string); value == nil || isText && text == "" {
			return nil, errors.New(message)
		}
		return value, nil
	}
	known["fail"] = func(message string) (string, error) { return "", errors.New(message) }
	known["lookup"] = func(string, string, string, string) object { return object{} }
	known["toYaml"] = func(value interface{}) (string, error) {
		var out strings.Builder
		encoder := yaml.NewEncoder(&out)
		encoder.SetIndent(2)
		err := encoder.Encode(value)
		return strings.TrimSuffix(out.String(), "\n"), err
	}
	known["fromYaml"] = func(text string) object {
		read := object{}
		if err := yaml.Unmarshal([]byte(text), &read); err != nil {
			read["Error"] = err.Error()
		}
		return read
	}
	return known
}

// split makes documents of texts, in the order in which Helm installs them.
func split(texts map[string]string) ([]manifest, error) {
	var found []manifest
	for path, text := range texts {
		if strings.HasSuffix(path, "NOTES.txt") {
			continue
		}
		decoder := yaml.NewDecoder(strings.NewReader(text))
		for {
			body := object{}
			err := decoder.Decode(&body)
			if err != nil && err.Error() == "EOF" {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w\n%s", path, err, text)
			}
			if len(body) > 0 {
				found = append(found, manifest{path, body})
			}
		}
	}
	sort.Slice(found, func(one, other int) bool { return key(found[one]) < key(found[other]) })
	return found, nil
}

func key(of manifest) string {
	kind, _ := of.body["kind"].(string)
	metadata, _ := of.body["metadata"].(object)
	rank := len(installOrder)
	for at, known := range installOrder {
		if known == kind {
			rank = at
		}
	}
	return fmt.Sprintf("%02d %s %v %s", rank, kind, metadata["name"], of.path)
}

func show(manifests []manifest, asJSON bool) error {
	if asJSON {
		bodies := []object{}
		for _, one := range manifests {
			bodies = append(bodies, one.body)
		}
		return json.NewEncoder(os.Stdout).Encode(bodies)
	}
	for _, one := range manifests {
		text, err := yaml.Marshal(one.body)
		if err != nil {
			return err
		}
		fmt.Printf("---\n# Source: %s\n%s", one.path, text)
	}
	return nil
}

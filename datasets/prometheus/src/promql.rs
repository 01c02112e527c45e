//! Queries.

use std::fmt::Write;
use vocab::GpuModel;

/// How series say whose they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Labels {
    /// Label of the organization.
    pub organization: String,
    /// The label that names the GPU model, if one does.
    pub gpu_model: Option<String>,
    /// The GPU model of series that name none.
    pub fixed_model: Option<GpuModel>,
}

/// The questions of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queries {
    /// HP GPUs running and waiting, a series for each organization and GPU model.
    pub demand: String,
    /// Answers anything whenever the source was scraped: where it does, and the demand answers nothing, the demand is zero.
    pub presence: Option<String>,
    /// GPUs, a series for each GPU model.
    pub capacity: Option<String>,
    /// Labels of the demand series.
    pub labels: Labels,
}

/// The label that every metric of a pod has.
pub const NAMESPACE: &str = "namespace";
const RESOURCE: &str = r#"resource="nvidia_com_gpu""#;

impl Queries {
    /// For kube-state-metrics: what pods of these priority classes ask for while they run or wait. Each part is made one of a
    /// pod by `max`, so that two instances of kube-state-metrics count it once.
    ///
    /// The organization is the namespace, or a label of it (`kube_namespace_labels`). The GPU model is that of the node
    /// (`kube_node_labels`), or, of a pod that waits without one, that of its node selector (`kube_pod_nodeselectors`); where
    /// both are silent, the fixed model.
    #[must_use]
    pub fn kube_state_metrics(hp_priority_classes: &[String], labels: Labels) -> Self {
        let classes: Vec<String> = hp_priority_classes.iter().map(|class| escaped(class)).collect();
        let mut pods = format!(
            "max by (namespace, pod, container) (kube_pod_container_resource_requests{{{RESOURCE}}})\n  \
             * on (namespace, pod) group_left () max by (namespace, pod) (kube_pod_status_phase{{phase=~\"Pending|Running\"}} == 1)\n  \
             * on (namespace, pod) group_left () max by (namespace, pod) (kube_pod_info{{priority_class=~\"{}\"}})",
            classes.join("|")
        );
        let mut by = labels.organization.clone();
        if labels.organization != NAMESPACE {
            let label = &labels.organization;
            // Writing to a string cannot fail.
            let _ = write!(
                pods,
                "\n  * on (namespace) group_left ({label}) topk by (namespace) (1, max by (namespace, {label}) (kube_namespace_labels))"
            );
        }
        if let Some(label) = &labels.gpu_model {
            let _ = write!(
                pods,
                "\n  * on (namespace, pod) group_left ({label}) ({})",
                models(label, labels.fixed_model.as_ref())
            );
            let _ = write!(by, ", {label}");
        }
        Self {
            demand: format!("sum by ({by}) (\n  {pods}\n)"),
            presence: Some(
                "count(kube_pod_info) and count(kube_pod_status_phase) and count(kube_pod_container_resource_requests)"
                    .to_owned(),
            ),
            capacity: Some(capacity(labels.gpu_model.as_deref())),
            labels,
        }
    }
}

/// One series a pod, with the value 1 and the GPU model in `label`.
fn models(label: &str, fixed: Option<&GpuModel>) -> String {
    let selector = label.strip_prefix("label_").unwrap_or(label);
    let any = "max by (namespace, pod) (kube_pod_info)";
    let silent = fixed.map_or_else(
        || any.to_owned(),
        // In a replacement a dollar names a group, unless it is doubled.
        |model| {
            format!("label_replace({any}, \"{label}\", \"{}\", \"\", \"\")", quoted(model.as_str()).replace('$', "$$"))
        },
    );
    format!(
        "topk by (namespace, pod) (1, max by (namespace, pod, {label}) (kube_pod_info{{node!=\"\"}} * on (node) group_left \
         ({label}) {nodes}))\n    \
         or on (namespace, pod) topk by (namespace, pod) (1, max by (namespace, pod, {label}) (label_replace(\
         kube_pod_nodeselectors{{nodeselector_{selector}!=\"\"}}, \"{label}\", \"$1\", \"nodeselector_{selector}\", \"(.*)\")))\n    \
         or on (namespace, pod) {silent}",
        nodes = node_models(label)
    )
}

/// One series a node, with the value 1 and the GPU model in `label`. `topk` keeps one where two instances of kube-state-metrics
/// differ for a moment.
fn node_models(label: &str) -> String {
    format!("topk by (node) (1, max by (node, {label}) (kube_node_labels{{{label}!=\"\"}}))")
}

/// GPUs of schedulable nodes.
fn capacity(label: Option<&str>) -> String {
    let nodes = format!(
        "max by (node) (kube_node_status_allocatable{{{RESOURCE}}}) unless on (node) max by (node) (kube_node_spec_unschedulable == 1)"
    );
    match label {
        Some(label) => format!(
            "sum by ({label}) (({nodes}) * on (node) group_left ({label}) {models})",
            models = node_models(label)
        ),
        None => format!("sum({nodes})"),
    }
}

/// A text inside a string of PromQL.
fn quoted(text: &str) -> String {
    text.replace('\\', r"\\").replace('"', r#"\""#)
}

/// A name inside a regular expression inside a string of PromQL.
fn escaped(name: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || ['-', '_', '/', ':', ' '].contains(&letter);
    name.chars().fold(String::new(), |mut text, letter| {
        match letter {
            // The regular expression knows \\ and \x22: no quote is left that could end the string.
            '\\' => text.push_str(r"\\\\"),
            '"' => text.push_str(r"\\x22"),
            letter if is_plain(letter) => text.push(letter),
            letter => {
                text.push_str(r"\\");
                text.push(letter);
            }
        }
        text
    })
}

/// Whether a text is a name of a label.
#[must_use]
pub(crate) fn is_label(text: &str) -> bool {
    let is_first = |letter: char| letter.is_ascii_alphabetic() || letter == '_';
    text.starts_with(is_first) && text.chars().all(|letter| is_first(letter) || letter.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(organization: &str, gpu_model: Option<&str>) -> Labels {
        Labels { organization: organization.to_owned(), gpu_model: gpu_model.map(str::to_owned), fixed_model: None }
    }

    #[test]
    fn names_of_priority_classes_are_names_and_no_expressions() {
        assert_eq!(escaped("high-priority"), "high-priority");
        assert_eq!(escaped("a.b"), r"a\\.b");
        assert_eq!(escaped(r#"a"} or up{"#), r"a\\x22\\} or up\\{");
        assert_eq!(escaped(r"a\"), r"a\\\\");
    }

    #[test]
    fn what_is_asked_for_follows_the_labels() {
        let plain = Queries::kube_state_metrics(&["hp".to_owned(), "system".to_owned()], labels("namespace", None));
        assert!(plain.demand.starts_with("sum by (namespace) ("));
        assert!(plain.demand.contains(r#"priority_class=~"hp|system""#) && !plain.demand.contains("kube_node_labels"));
        assert!(plain.capacity.unwrap().starts_with("sum(max by (node)"));
        let all = Queries::kube_state_metrics(&["hp".to_owned()], labels("label_team", Some("label_gpu")));
        assert!(all.demand.starts_with("sum by (label_team, label_gpu) ("));
        assert!(all.demand.contains("kube_namespace_labels") && all.demand.contains("nodeselector_gpu"));
        assert!(all.capacity.unwrap().starts_with("sum by (label_gpu) "));
    }

    #[test]
    fn the_fixed_model_is_that_of_pods_that_say_none_and_is_no_expression() {
        let fixed_model = Some(GpuModel::parse(r#"A"1$\"#).unwrap());
        let labels = Labels { fixed_model, ..labels("namespace", Some("label_gpu")) };
        let demand = Queries::kube_state_metrics(&["hp".to_owned()], labels).demand;
        assert!(demand.contains(r#""label_gpu", "A\"1$$\\", "", "")"#), "{demand}");
    }

    #[test]
    fn a_label_is_a_word() {
        assert!(is_label("label_nvidia_com_gpu_product") && is_label("_a1"));
        assert!(!is_label("") && !is_label("1a") && !is_label("a-b") && !is_label("a) or vector(1"));
    }
}

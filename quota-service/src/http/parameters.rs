//! Query parameters: strict, as bodies are. A misspelt one would silently be left out.

use super::ApiError;
use super::routes::Route;
use crate::access::decoded;
use axum::http::Uri;
use std::collections::HashMap;
use std::sync::LazyLock;
use utoipa::openapi::path::{Operation, ParameterIn};
use utoipa::openapi::{PathItem, RefOr, Required};

/// The query parameters of each route, from the OpenAPI document.
static KNOWN: LazyLock<HashMap<(&'static str, usize), Vec<String>>> = LazyLock::new(|| {
    let document = super::openapi();
    let documented = super::routes::ROUTES.iter().filter(|route| route.handler.is_some());
    documented
        .map(|route| ((route.path, route.verb as usize), named(document.paths.paths.get(route.path), route)))
        .collect()
});

fn named(item: Option<&PathItem>, route: &Route) -> Vec<String> {
    let operation = item.and_then(|item| operation(item, route));
    let parameters = operation.and_then(|one| one.parameters.as_ref()).into_iter().flatten();
    let listed = parameters.filter_map(|one| match one {
        RefOr::T(parameter) => Some(parameter),
        RefOr::Ref(_) => None,
    });
    listed.filter(|one| one.parameter_in == ParameterIn::Query).map(|one| one.name.clone()).collect()
}

fn operation<'a>(item: &'a PathItem, route: &Route) -> Option<&'a Operation> {
    use super::routes::Verb::{Delete, Get, Post, Put};
    let operation = match route.verb {
        Get => &item.get,
        Put => &item.put,
        Post => &item.post,
        Delete => &item.delete,
    };
    operation.as_ref()
}

/// Refuses a parameter that the route does not have, and text that is not UTF-8. Files, metrics and probes take any query:
/// browsers, scrapers and load balancers add their own.
pub fn check(route: &Route, uri: &Uri) -> Result<(), ApiError> {
    let Some(query) = uri.query().filter(|_| !route.is_probe()) else { return Ok(()) };
    let Some(known) = KNOWN.get(&(route.path, route.verb as usize)) else { return Ok(()) };
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let name = decoded(name).ok_or_else(|| not_utf8(name))?;
        if !known.iter().any(|one| *one == name) {
            return Err(unknown(&name, known));
        }
        decoded(value).ok_or_else(|| not_utf8(&format!("{name}={value}")))?;
    }
    Ok(())
}

fn not_utf8(text: &str) -> ApiError {
    ApiError::Query { detail: format!("{text} is not UTF-8 text: percent-encode the UTF-8 bytes of the name") }
}

fn unknown(name: &str, known: &[String]) -> ApiError {
    // The manual calls the guarantee rate p.
    let rate = known.iter().find(|one| name == "p" && *one == "guarantee_rate").cloned();
    let closest = rate.or_else(|| command_line::closest(name, known));
    let suggestion = closest.map_or_else(String::new, |one| format!(", did you mean `{one}`?"));
    let known = match known {
        [] => "the route has none".to_owned(),
        known => format!("parameters: {}", known.join(", ")),
    };
    let separator = if suggestion.is_empty() { "; " } else { " " };
    ApiError::Query { detail: format!("`{name}` is not a parameter{suggestion}{separator}{known}") }
}

/// The choices of each required query parameter that has some: its description in the OpenAPI document begins with one.
static CHOICES: LazyLock<HashMap<String, String>> = LazyLock::new(|| {
    let document = super::openapi();
    let operations =
        super::routes::ROUTES.iter().filter_map(|route| operation(document.paths.paths.get(route.path)?, route));
    let parameters = operations.flat_map(|one| one.parameters.iter().flatten());
    let chosen = parameters.filter_map(|one| match one {
        RefOr::T(one) if one.parameter_in == ParameterIn::Query && one.required == Required::True => {
            let choices = one.description.as_deref().filter(|text| text.starts_with('`'))?;
            Some((one.name.clone(), choices.trim_end_matches('.').to_owned()))
        }
        _ => None,
    });
    chosen.collect()
});

/// A fault that names a missing parameter, with what it may be.
fn with_choices(fault: &str) -> String {
    let name = fault.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`'));
    match name.and_then(|name| CHOICES.get(name)) {
        Some(choices) => format!("{fault}: write {choices}"),
        None => fault.to_owned(),
    }
}

/// A refusal of a value in the words of a user: `hours: invalid digit found in string` comes from a parser.
pub fn plainly(fault: &str, uri: &Uri) -> String {
    let fault = fault.strip_prefix("Failed to deserialize query string: ").unwrap_or(fault);
    let Some((name, why)) = fault.split_once(": ") else { return with_choices(fault) };
    let given = crate::access::queried(uri, name).unwrap_or_default();
    let wrong = match why {
        "invalid digit found in string" => "is not a whole number: write digits alone, such as 4",
        "cannot parse integer from empty string" => "is empty: write a whole number, such as 4",
        "invalid float literal" | "cannot parse float from empty string" => "is not a number: write one such as 1.5",
        "number too large to fit in target type" => "is too large",
        "provided string was not `true` or `false`" => "is neither true nor false",
        other => match other.strip_prefix("unknown variant ").and_then(|rest| rest.split_once(", expected ")) {
            Some((_, choices)) => {
                return format!("`{name}`: {given:?} is not known: write {}", choices.trim_start_matches("one of "));
            }
            None => return format!("`{name}`: {other}"),
        },
    };
    format!("`{name}`: {given:?} {wrong}")
}

#[cfg(test)]
mod tests {
    use super::super::routes::{ROUTES, row};
    use super::*;
    use axum::http::Method;

    fn refused(path: &str, asked: &str) -> Option<String> {
        match check(row(&Method::GET, Some(path)).unwrap(), &asked.parse().unwrap()) {
            Err(ApiError::Query { detail }) => Some(detail),
            _ => None,
        }
    }

    #[test]
    fn an_unknown_parameter_is_refused_on_every_route_with_the_closest_one() {
        for route in ROUTES.iter().filter(|route| route.handler.is_some() && !route.is_probe()) {
            assert!(check(route, &"/x?surely_unknown=1".parse().unwrap()).is_err(), "{route:?}");
        }
        let pool = "/v1/tasks?cluster=a&gpu_model=b&status=running";
        assert_eq!(refused("/v1/tasks", &format!("{pool}&limit=1")), None);
        assert_eq!(
            refused("/v1/tasks", &format!("{pool}&limt=1")).unwrap(),
            "`limt` is not a parameter, did you mean `limit`? parameters: cluster, gpu_model, status, limit"
        );
        assert_eq!(refused("/v1/pools", "/v1/pools?x=1").unwrap(), "`x` is not a parameter; the route has none");
        assert_eq!(refused("/quota", "/quota?cluster=a&gpu_model=b&hours=1&wait=30s"), None);
        assert_eq!(refused("/metrics", "/metrics?from=a-scraper"), None);
        let asked = "/quota?cluster=a&gpu_model=b&hours=1&p=0.99";
        assert_eq!(
            refused("/quota", asked).unwrap(),
            "`p` is not a parameter; parameters: cluster, gpu_model, hours, wait",
            "a letter within a name is no likeness"
        );
        let what_if = refused("/v1/quota/what-if", asked).unwrap();
        assert!(what_if.starts_with("`p` is not a parameter, did you mean `guarantee_rate`?"), "{what_if}");
    }

    #[test]
    fn a_value_that_is_not_utf8_is_refused_and_not_replaced() {
        assert!(refused("/quota", "/quota?cluster=%ff").unwrap().starts_with("cluster=%ff is not UTF-8"));
        assert!(refused("/quota", "/quota?%ff=1").unwrap().starts_with("%ff is not UTF-8"));
        assert_eq!(refused("/quota", "/quota?cluster=%C3%A9"), None);
    }

    #[test]
    fn a_bad_value_is_named_with_its_parameter_and_text() {
        let plain = |fault: &str, asked: &str| plainly(fault, &asked.parse().unwrap());
        assert_eq!(
            plain("Failed to deserialize query string: hours: invalid digit found in string", "/quota?hours=4h"),
            "`hours`: \"4h\" is not a whole number: write digits alone, such as 4"
        );
        assert_eq!(
            plain(
                "Failed to deserialize query string: for: unknown variant `x`, expected `all` or `reads`",
                "/readyz?for=x"
            ),
            "`for`: \"x\" is not known: write `all` or `reads`"
        );
        assert_eq!(
            plain("Failed to deserialize query string: missing field `cluster`", "/quota"),
            "missing field `cluster`"
        );
        assert_eq!(
            plain("Failed to deserialize query string: missing field `status`", "/v1/tasks?cluster=a&gpu_model=b"),
            "missing field `status`: write `waiting` or `running`"
        );
    }
}

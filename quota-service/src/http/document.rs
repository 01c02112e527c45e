//! The answers that routes have in common: added in one place, so that no route lacks them.

use super::routes::row;
use axum::http::Method;
use utoipa::Number;
use utoipa::openapi::path::Operation;
use utoipa::openapi::schema::{AdditionalProperties, Array, ArrayItems, Object, Schema};
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{Content, OpenApi, PathItem, Ref, RefOr, Response};
use wire::bounds::{DECIMALS, WHOLE_NUMBERS};

const OVERLOADED: &str = "Overloaded, or the request took too long; retry after Retry-After";

/// Adds the answers that bodies, writes and overload have in common.
pub fn complete(document: &mut OpenApi) {
    let bearer = SecurityScheme::Http(Http::builder().scheme(HttpAuthScheme::Bearer).build());
    document.components.get_or_insert_default().add_security_scheme("token", bearer);
    for (path, item) in &mut document.paths.paths {
        let PathItem { get, put, post, delete, .. } = item;
        let operations = [(Method::GET, get), (Method::PUT, put), (Method::POST, post), (Method::DELETE, delete)];
        for (method, operation) in operations {
            let (Some(operation), Some(row)) = (operation, row(&method, Some(path))) else { continue };
            let (writes, is_open) = (method != Method::GET, row.is_probe());
            let may = [
                (writes, "413", "The body is too large"),
                (writes, "415", "Content-Type is not application/json, or the body is compressed"),
                (writes, "422", "The database cannot hold this"),
                (writes, "507", "The database takes no more data"),
                (!is_open, "400", "The query or path has a parameter that is unknown or invalid"),
                (!is_open, "401", "The request has no valid token"),
                (
                    !is_open,
                    "403",
                    "The role or scope of the token does not allow the request, or its host or origin is foreign",
                ),
                (!is_open, "429", "One address exceeds its rate"),
                (!is_open, "503", OVERLOADED),
            ];
            for (_, status, description) in may.into_iter().filter(|(may, ..)| *may) {
                add(operation, status, description);
            }
            if !is_open {
                operation.security = Some(vec![SecurityRequirement::new("token", Vec::<String>::new())]);
            }
        }
    }
}

/// States the ranges of the numbers in bodies.
pub fn bound(document: &mut OpenApi) {
    let schemas = &mut document.components.get_or_insert_default().schemas;
    let of_whole = WHOLE_NUMBERS.into_iter().map(|(schema, field, least, most)| {
        (schema, field, Number::from(least), (most < u64::MAX).then(|| Number::from(most)))
    });
    let of_decimal = DECIMALS
        .into_iter()
        .map(|(schema, field, least, most)| (schema, field, Number::from(least), Some(Number::from(most))));
    for (schema, field, least, most) in of_whole.chain(of_decimal) {
        let Some(RefOr::T(Schema::Object(object))) = schemas.get_mut(schema) else { continue };
        if let Some(number) = object.properties.get_mut(field).and_then(number) {
            (number.minimum, number.maximum) = (Some(least), most);
        }
    }
}

/// The number of a field, of the items of a list, or of the values of a map.
fn number(of: &mut RefOr<Schema>) -> Option<&mut Object> {
    match of {
        RefOr::T(Schema::Array(Array { items: ArrayItems::RefOrSchema(items), .. })) => number(items),
        RefOr::T(Schema::Object(object)) => {
            if object.additional_properties.is_none() {
                return Some(object);
            }
            match object.additional_properties.as_deref_mut() {
                Some(AdditionalProperties::RefOr(values)) => number(values),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Adds an answer that the route itself does not describe.
fn add(operation: &mut Operation, status: &str, description: &str) {
    let mut answer = Response::new(description);
    let problem = Content::new(Some(Ref::from_schema_name("Problem")));
    answer.content.insert("application/problem+json".to_owned(), RefOr::T(problem));
    operation.responses.responses.entry(status.to_owned()).or_insert(RefOr::T(answer));
}

#[cfg(test)]
mod tests {
    use super::{DECIMALS, WHOLE_NUMBERS};
    use crate::http::openapi;
    use std::collections::BTreeSet;

    #[test]
    fn the_document_has_the_answers_to_bodies_writes_and_overload() {
        let document = serde_json::to_value(openapi()).unwrap();
        let of = |method: &str, path: &str| {
            let answers = document["paths"][path][method]["responses"].as_object().unwrap();
            answers.keys().map(String::as_str).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(of("get", "/healthz"), "200");
        assert_eq!(of("get", "/v1/pools"), "200 400 401 403 429 503");
        assert_eq!(of("put", "/v1/nodes/{id}"), "200 400 401 403 404 413 415 422 429 503 507");
        assert_eq!(of("delete", "/v1/nodes/{id}"), "204 400 401 403 404 413 415 422 429 503 507");
        let own = &document["paths"]["/v1/tasks"]["post"]["responses"]["422"]["description"];
        assert!(own.as_str().unwrap().starts_with("A task of this id exists with another request"), "{own}");
    }

    #[test]
    fn the_document_has_the_range_of_each_number_that_has_one() {
        let document = serde_json::to_value(openapi()).unwrap();
        let found = |schema: &str, field: &str| {
            let of = &document["components"]["schemas"][schema]["properties"][field];
            let inside = [of, &of["items"], &of["additionalProperties"]];
            let range = inside.into_iter().find(|one| !one["minimum"].is_null());
            range.map(|one| (one["minimum"].clone(), one["maximum"].clone()))
        };
        for (schema, field, least, most) in WHOLE_NUMBERS {
            let (from, to) = found(schema, field).unwrap_or_default();
            assert_eq!((from.as_u64(), to.as_u64().unwrap_or(u64::MAX)), (Some(least), most), "{schema} {field}");
        }
        for (schema, field, least, most) in DECIMALS {
            let (from, to) = found(schema, field).unwrap_or_default();
            assert_eq!((from.as_f64(), to.as_f64()), (Some(least), Some(most)), "{schema} {field}");
        }
    }

    #[test]
    fn the_document_has_the_range_of_each_number_in_a_query() {
        let document = serde_json::to_value(openapi()).unwrap();
        let operations =
            document["paths"].as_object().unwrap().values().flat_map(|path| path.as_object().unwrap().values());
        let asked = operations.flat_map(|operation| operation["parameters"].as_array().into_iter().flatten());
        let is_number = |one: &&serde_json::Value| {
            let kind = one["schema"]["type"].to_string();
            one["in"] == "query" && (kind.contains("integer") || kind.contains("number"))
        };
        let ranges: Vec<_> = asked.filter(is_number).map(|one| (&one["name"], &one["schema"])).collect();
        assert!(ranges.len() > 15, "{ranges:?}");
        for (name, range) in &ranges {
            assert!(range["minimum"].is_number() && range["maximum"].is_number(), "{name}: {range}");
        }
        let of_quota = &document["paths"]["/quota"]["get"]["parameters"];
        let hours = of_quota.as_array().unwrap().iter().find(|one| one["name"] == "hours").unwrap();
        assert_eq!(hours["schema"]["maximum"], vocab::HorizonHours::MAX, "{hours}");
    }

    #[test]
    fn an_answer_in_several_forms_has_each_of_their_media_types() {
        let document = serde_json::to_value(openapi()).unwrap();
        let forms = |path: &str| document["paths"][path]["get"]["responses"]["200"]["content"].clone();
        let statement = forms("/v1/statement");
        assert_eq!(statement.as_object().unwrap().len(), 2, "{statement}");
        assert_eq!(statement["application/json"]["schema"]["$ref"], "#/components/schemas/StatementAnswer");
        assert_eq!(statement["text/csv"]["schema"]["type"], "string");
        assert!(forms("/v1/reservations.ics")["text/calendar"].is_object());
    }

    /// The lists of values of a document, each with its place.
    fn lists<'a>(place: &str, of: &'a serde_json::Value, into: &mut Vec<(String, &'a serde_json::Value)>) {
        for (key, value) in of.as_object().into_iter().flatten() {
            if key == "enum" && value.is_array() {
                into.push((place.to_owned(), value));
            }
            lists(&format!("{place}/{key}"), value, into);
        }
        for value in of.as_array().into_iter().flatten() {
            lists(place, value, into);
        }
    }

    /// The schemas of keys of the maps of a document, each with its place.
    fn keys_of_maps<'a>(place: &str, of: &'a serde_json::Value, into: &mut Vec<(String, &'a serde_json::Value)>) {
        for (key, value) in of.as_object().into_iter().flatten() {
            if key == "propertyNames" {
                into.push((place.to_owned(), &value["type"]));
            }
            keys_of_maps(&format!("{place}/{key}"), value, into);
        }
        for value in of.as_array().into_iter().flatten() {
            keys_of_maps(place, value, into);
        }
    }

    #[test]
    fn the_keys_of_every_map_are_strings() {
        let document = serde_json::to_value(openapi()).unwrap();
        let mut found = Vec::new();
        keys_of_maps("", &document, &mut found);
        assert!(found.len() > 5, "{}", found.len());
        for (place, kind) in found {
            assert_eq!(kind, "string", "{place}: a key of JSON is a string");
        }
    }

    #[test]
    fn listed_values_are_the_words_on_the_wire() {
        let document = serde_json::to_value(openapi()).unwrap();
        let mut found = Vec::new();
        lists("", &document, &mut found);
        assert!(found.len() > 15, "{}", found.len());
        for (place, values) in found {
            let words = values.as_array().unwrap().iter().filter_map(serde_json::Value::as_str);
            for word in words {
                // Days of the week are written as iCalendar writes them: MO, TU.
                let is_capitals = word.bytes().all(|byte| byte.is_ascii_uppercase());
                let has_capitals = word.bytes().any(|byte| byte.is_ascii_uppercase());
                assert!(is_capitals || !has_capitals, "{place}: {word} is the name of a variant");
            }
        }
    }

    #[test]
    fn every_reference_leads_to_a_schema() {
        let document = serde_json::to_value(openapi()).unwrap();
        let text = document.to_string();
        let named: BTreeSet<&str> =
            text.split("#/components/schemas/").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        let known = document["components"]["schemas"].as_object().unwrap();
        let missing: Vec<&&str> = named.iter().filter(|name| !known.contains_key(**name)).collect();
        assert!(missing.is_empty() && named.len() > 100, "{missing:?}");
    }
}

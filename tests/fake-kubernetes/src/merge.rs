//! The other patches: JSON merge patch, strategic merge patch (lists with keys), JSON patch.

use crate::fields::{self, Lists};
use crate::status::Refusal;
use serde_json::{Value, json};

/// RFC 7396: `null` takes away, an object goes deeper, all else replaces.
pub fn merge(object: &mut Value, patch: &Value) {
    let Some(changes) = patch.as_object() else {
        *object = patch.clone();
        return;
    };
    if !object.is_object() {
        *object = json!({});
    }
    for (name, change) in changes {
        if change.is_null() {
            object.as_object_mut().expect("it was made an object above").remove(name);
        } else {
            merge(&mut object[name.as_str()], change);
        }
    }
}

/// As a merge patch, but entries of lists with keys are merged one by one.
pub fn strategic(object: &mut Value, patch: &Value, lists: &Lists, path: &mut Vec<String>) {
    let Some(changes) = patch.as_object() else {
        *object = patch.clone();
        return;
    };
    if !object.is_object() {
        *object = json!({});
    }
    for (name, change) in changes {
        path.push(format!("f:{name}"));
        let keys = lists.keys(path);
        match change.as_array() {
            _ if change.is_null() => drop(object.as_object_mut().map(|fields| fields.remove(name))),
            Some(entries) if !keys.is_empty() => {
                for entry in entries {
                    let Some(step) = fields::entry_step(entry, &keys) else { continue };
                    let at = [format!("f:{name}"), step];
                    let mut merged = fields::get(object, &at).cloned().unwrap_or_default();
                    strategic(&mut merged, entry, lists, path);
                    fields::set(object, &at, merged);
                }
            }
            _ => strategic(&mut object[name.as_str()], change, lists, path),
        }
        path.pop();
    }
}

/// RFC 6902, of which `move` and `copy` are left out.
pub fn json_patch(object: &mut Value, patch: &Value) -> Result<(), Refusal> {
    let steps = patch.as_array().ok_or_else(|| Refusal::bad_request("a JSON patch is a list of operations"))?;
    for step in steps {
        let path = step["path"].as_str().unwrap_or_default();
        let failed =
            || Refusal::new(422, "Invalid", &format!("the server rejected our request: {step} does not apply"));
        match step["op"].as_str() {
            Some("test") if object.pointer(path) == Some(&step["value"]) => {}
            Some("replace") => *object.pointer_mut(path).ok_or_else(failed)? = step["value"].clone(),
            Some("add") => add(object, path, step["value"].clone()).ok_or_else(failed)?,
            Some("remove") => take(object, path).ok_or_else(failed)?,
            _ => return Err(failed()),
        }
    }
    Ok(())
}

fn parent<'a>(object: &'a mut Value, path: &str) -> Option<(&'a mut Value, String)> {
    let (above, last) = path.rsplit_once('/')?;
    Some((object.pointer_mut(above)?, last.replace("~1", "/").replace("~0", "~")))
}

fn add(object: &mut Value, path: &str, value: Value) -> Option<()> {
    let (above, last) = parent(object, path)?;
    match above {
        Value::Object(fields) => drop(fields.insert(last, value)),
        Value::Array(list) if last == "-" => list.push(value),
        Value::Array(list) => {
            let at: usize = last.parse().ok().filter(|at| *at <= list.len())?;
            list.insert(at, value);
        }
        _ => return None,
    }
    Some(())
}

fn take(object: &mut Value, path: &str) -> Option<()> {
    let (above, last) = parent(object, path)?;
    match above {
        Value::Object(fields) => fields.remove(&last).map(drop),
        Value::Array(list) => {
            let at: usize = last.parse().ok().filter(|at| *at < list.len())?;
            list.remove(at);
            Some(())
        }
        _ => None,
    }
}

//! Settings of the storage, as they come from the environment.

use hyper::Uri;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};

/// Checks what the client would only find wrong while it makes a request.
///
/// # Errors
/// A setting cannot be right: its variable, and what was expected.
pub fn check(builder: &AmazonS3Builder) -> Result<(), String> {
    if let Some(address) = builder.get_config_value(&AmazonS3ConfigKey::Endpoint) {
        let is_address = address.parse().is_ok_and(|uri| is_address(&uri));
        let expected = "expected http:// or https://, a host and, where it needs one, a port, as in http://minio:9000";
        is_address.then_some(()).ok_or_else(|| format!("invalid AWS_ENDPOINT {address:?}: {expected}"))?;
    }
    // Values are secret, so that none is shown. A file of a secret often ends with a line break. They stand in headers; the secret
    // key, which does not, may be any text.
    for (key, variable) in [
        (AmazonS3ConfigKey::AccessKeyId, "AWS_ACCESS_KEY_ID"),
        (AmazonS3ConfigKey::Token, "AWS_SESSION_TOKEN"),
        (AmazonS3ConfigKey::Region, "AWS_REGION"),
    ] {
        let value = builder.get_config_value(&key).unwrap_or_default();
        if !value.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(format!(
                "invalid {variable}: it holds a space, a line break or another character that no key has"
            ));
        }
    }
    Ok(())
}

fn is_address(uri: &Uri) -> bool {
    let is_http = uri.scheme_str().is_some_and(|scheme| scheme == "http" || scheme == "https");
    let Some(authority) = uri.authority().filter(|authority| !authority.host().is_empty()) else { return false };
    let after_host = authority.as_str().rsplit_once(']').map_or(authority.as_str(), |(_, port)| port);
    is_http && after_host.contains(':') == authority.port_u16().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_no_request_can_have_are_refused() {
        let builder = |address: &str| AmazonS3Builder::new().with_config(AmazonS3ConfigKey::Endpoint, address);
        for good in
            ["http://minio:9000", "https://s3.example.com", "http://127.0.0.1:9/", "http://[::1]:9000", "https://[::1]"]
        {
            assert_eq!(check(&builder(good)), Ok(()), "{good}");
        }
        for bad in ["", "minio:9000", "localhost", "http://", "http://minio:70000", "ftp://minio", "http://mi nio"] {
            assert!(check(&builder(bad)).unwrap_err().starts_with("invalid AWS_ENDPOINT"), "{bad}");
        }
    }

    #[test]
    fn a_key_with_a_line_break_is_named_and_not_shown() {
        for key in [AmazonS3ConfigKey::AccessKeyId, AmazonS3ConfigKey::Region, AmazonS3ConfigKey::Token] {
            let fault = check(&AmazonS3Builder::new().with_config(key, "hidden\n")).unwrap_err();
            assert!(fault.starts_with("invalid AWS_") && !fault.contains("hidden"), "{fault}");
        }
        assert_eq!(check(&AmazonS3Builder::new()), Ok(()));
    }
}

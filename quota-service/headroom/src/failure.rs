//! Failed requests as exit codes.

use command_line::{Exit, Failure};
use headroom_client::ClientError;

/// The failure of a request; refusals have their code behind the sentence.
pub fn of(fault: &ClientError) -> Failure {
    let exit = match fault {
        ClientError::NoId { .. } => Exit::Usage,
        ClientError::Settings { .. } | ClientError::Foreign { .. } => Exit::ConfigInvalid,
        _ if fault.is_transient() => Exit::Unavailable,
        ClientError::Refused { status: 400 | 413 | 422, .. } => Exit::DataInvalid,
        _ => Exit::Failure,
    };
    match fault.code() {
        Some(code) => Failure::new(exit, format_args!("{fault} ({code})")),
        None => Failure::new(exit, fault),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_passing_fault_is_unavailable_and_a_bad_request_bad_data() {
        let refused = |status| ClientError::Refused {
            url: "http://x/v1/pools".to_owned(),
            status,
            detail: "no".to_owned(),
            problem: None,
            retry_after: None,
        };
        let exits = [503, 429, 400, 422, 404, 409, 401].map(|status| of(&refused(status)).exit as u8);
        assert_eq!(exits, [5, 5, 3, 3, 1, 1, 1]);
        let away = ClientError::Unavailable { url: "http://x".to_owned(), detail: "refused".to_owned() };
        assert_eq!(of(&away).exit as u8, 5);
        assert_eq!(of(&ClientError::NoId { id: "..".to_owned() }).exit as u8, 2);
    }
}

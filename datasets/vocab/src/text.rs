//! Texts that people write for others: reasons, and the names of tokens and replicas.

use crate::ids::invisible;

/// Characters that no name may have and that belong to sentences: spaces of typography, joiners of Persian, Indic scripts and emoji, and
/// the choice of an emoji's form. They neither turn nor hide what stands beside them.
const WRITTEN: [u32; 7] = [0x00A0, 0x200C, 0x200D, 0x202F, 0x3000, 0xFE0E, 0xFE0F];

/// Why a text was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    /// A new line, a tabulator and the like.
    #[error("the text contains the control character U+{code_point:04X}: write it on one line")]
    Control {
        /// The first one.
        code_point: u32,
    },
    /// A character that cannot be seen, or turns the direction in which the text beside it is read.
    #[error("the text contains the invisible character U+{code_point:04X}: remove it")]
    Invisible {
        /// The first one.
        code_point: u32,
    },
}

/// Refuses a new text with characters that on a page would mirror or hide what stands beside them; a name may not have them either.
/// Texts that are stored already stay readable.
///
/// # Errors
/// [`TextError`] with the first of the characters.
pub fn new_text(text: &str) -> Result<(), TextError> {
    if let Some(control) = text.chars().find(|one| one.is_control()) {
        return Err(TextError::Control { code_point: control.into() });
    }
    let rest: String = text.chars().filter(|one| !WRITTEN.contains(&u32::from(*one))).collect();
    invisible(&rest).map_or(Ok(()), |code_point| Err(TextError::Invisible { code_point }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_would_mirror_or_hide_what_stands_beside_it_is_refused_with_the_character() {
        for code_point in [0x200B, 0x202E, 0x2028, 0x2066, 0xFEFF] {
            let text = format!("a{}b", char::from_u32(code_point).unwrap());
            let fault = new_text(&text).unwrap_err();
            assert_eq!(fault, TextError::Invisible { code_point });
            assert!(fault.to_string().contains(&format!("U+{code_point:04X}: remove it")), "{fault}");
        }
        assert_eq!(new_text("a\nb"), Err(TextError::Control { code_point: 0x0A }));
        let with_written =
            ["\u{26A0}\u{FE0F} 8\u{A0}GPUs", "می\u{200C}شود", "\u{1F469}\u{200D}\u{1F52C}", "新\u{3000}型"];
        for text in
            ["a launch: 8 GPUs (for \"vision\")", "新模型发布", "запуск", "השקה"].into_iter().chain(with_written)
        {
            assert_eq!(new_text(text), Ok(()));
        }
    }
}

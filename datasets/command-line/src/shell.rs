//! Names in commands that are shown to be run.

use std::borrow::Cow;

/// A word as a shell takes it: as it is where it has letters, digits and `-_.:/@%+=,` alone, else within quotes.
#[must_use]
pub fn shell_word(word: &str) -> Cow<'_, str> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.:/@%+=,".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        return Cow::Borrowed(word);
    }
    Cow::Owned(format!("'{}'", word.replace('\'', r"'\''")))
}

#[cfg(test)]
mod tests {
    use super::shell_word;

    #[test]
    fn a_name_that_a_shell_would_split_or_expand_is_quoted() {
        assert_eq!(shell_word("gfs-a100"), "gfs-a100");
        assert_eq!(shell_word("cl uster/ö"), "'cl uster/ö'");
        assert_eq!(shell_word("$(id)"), "'$(id)'");
        assert_eq!(shell_word("it's"), r"'it'\''s'");
        assert_eq!(shell_word(""), "''");
    }
}

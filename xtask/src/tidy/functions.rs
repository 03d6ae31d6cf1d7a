//! Finds functions and their lengths by matching braces.

use super::rust_text::blank;

/// A function and the number of lines from `fn` to its closing brace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Function {
    pub(super) name: String,
    /// Line of `fn`, from 1.
    pub(super) line: usize,
    /// Number of lines.
    pub(super) length: usize,
}

/// All functions with a body, in order.
pub(super) fn functions(text: &str) -> Vec<Function> {
    let code = blank(text);
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(position) = code[from..].find("fn ") {
        let start = from + position;
        from = start + 3;
        if code[..start].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let name: String = code[from..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        if let (false, Some(end)) = (name.is_empty(), body_end(&code, from)) {
            let line = 1 + code[..start].matches('\n').count();
            let length = 1 + code[start..end].matches('\n').count();
            found.push(Function { name, line, length });
        }
    }
    found
}

/// Position of the brace that closes the body, or `None` for a declaration (a `;` outside brackets comes first).
fn body_end(code: &str, from: usize) -> Option<usize> {
    let (mut braces, mut brackets) = (0usize, 0usize);
    for (offset, byte) in code[from..].bytes().enumerate() {
        match byte {
            b'(' | b'[' if braces == 0 => brackets += 1,
            b')' | b']' if braces == 0 => brackets = brackets.saturating_sub(1),
            b';' if braces == 0 && brackets == 0 => return None,
            b'{' => braces += 1,
            b'}' if braces == 1 => return Some(from + offset),
            b'}' => braces = braces.saturating_sub(1),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_lines_from_fn_to_the_closing_brace() {
        let text = "fn one() {}\n\nfn three(x: [u8; 4]) -> u8 {\n    if x[0] == b'}' { 1 } else { 2 }\n}\n";
        let found = functions(text);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].line, found[0].length), (1, 1));
        assert_eq!((found[1].name.as_str(), found[1].line, found[1].length), ("three", 3, 3));
    }

    #[test]
    fn declarations_and_pointers_are_no_functions() {
        assert!(
            functions("trait T { fn f(&self, x: [u8; 2]); }\ntype F = fn (u8) -> u8;\nconst often : u8 = 1;")
                .is_empty()
        );
    }
}

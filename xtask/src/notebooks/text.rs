//! When two texts say the same.

/// Whether two texts are equal but for what differs from run to run and from machine to machine:
/// addresses, times, and the last digit of a fraction.
///
/// Processors with vectors of other widths add in another order, so that `0.25` here can be `0.26`
/// there. Whole numbers are equal or differ.
pub(super) fn agree(expected: &str, found: &str) -> bool {
    let lines = |text: &str| -> Vec<Vec<String>> {
        let lines = text.trim_end().lines();
        lines.map(words).collect()
    };
    let (expected, found) = (lines(expected), lines(found));
    expected.len() == found.len()
        && expected.iter().zip(&found).all(|(expected, found)| {
            expected.len() == found.len() && expected.iter().zip(found).all(|(a, b)| same(a, b))
        })
}

/// The words of a line; a number that is a time has its unit in place of its value.
fn words(line: &str) -> Vec<String> {
    let mut words: Vec<String> = line.split_whitespace().map(str::to_string).collect();
    for unit in (1..words.len()).rev() {
        let is_unit = matches!(
            words[unit].trim_end_matches([',', '.', ')', ';']),
            "s" | "ms" | "µs" | "us" | "ns" | "min"
        );
        if is_unit && words[unit - 1].parse::<f64>().is_ok() {
            words[unit - 1] = "<time>".to_string();
        }
    }
    words
}

fn same(expected: &str, found: &str) -> bool {
    let address = |word: &str| word.starts_with("0x") && word.len() > 6;
    if expected == found || (address(expected) && address(found)) {
        return true;
    }
    let (Some((a, places)), Some((b, places_found))) = (fraction(expected), fraction(found)) else {
        return false;
    };
    // Half a unit more, since neither decimal is exact in binary.
    places == places_found && (a - b).abs() < 1.5 * 0.1_f64.powi(places)
}

/// A number with a point, and how many digits follow that.
fn fraction(word: &str) -> Option<(f64, i32)> {
    let word = word.trim_matches([',', ';', ':', '(', ')', '[', ']', '%']);
    let (_, digits) = word.split_once('.')?;
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    Some((word.parse().ok()?, i32::try_from(digits.len()).ok()?))
}

#[cfg(test)]
mod tests {
    use super::agree;

    #[test]
    fn texts_agree_but_for_what_may_differ() {
        for (expected, found) in [
            ("loss 0.25", "loss 0.25\n"),
            ("loss 0.25, then 0.10", "loss 0.26, then 0.09"),
            ("[0.999, 1.000]", "[1.000, 0.999]"),
            ("took 12.3 s", "took 8 s"),
            ("at 0x7f10aa20", "at 0x55d0bb10"),
        ] {
            assert!(agree(expected, found), "{expected} | {found}");
        }
        for (expected, found) in [
            ("loss 0.25", "loss 0.27"),
            ("loss 0.25", "loss 0.250"),
            ("loss 0.25", "loss NaN"),
            ("3 of 10", "4 of 10"),
            ("12 items", "13 items"),
            ("one line", "one line\nanother"),
            ("loss 0.25", ""),
        ] {
            assert!(!agree(expected, found), "{expected} | {found}");
        }
    }
}

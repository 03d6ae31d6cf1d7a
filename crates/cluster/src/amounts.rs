//! Numbers as people read them.

/// Returns a number as `950`, `12.3k` or `4.56M`.
pub fn count(number: f64) -> String {
    match number {
        n if n >= 1e9 => format!("{:.2}G", n / 1e9),
        n if n >= 1e6 => format!("{:.2}M", n / 1e6),
        n if n >= 1e4 => format!("{:.1}k", n / 1e3),
        n => format!("{n:.0}"),
    }
}

/// Returns a number with its noun: `1 epoch`, `3 epochs`.
pub fn counted(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// Returns a number of bytes in binary units.
pub fn bytes(number: u64) -> String {
    match number as f64 {
        n if n >= 1073741824.0 => format!("{:.2} GiB", n / 1073741824.0),
        n if n >= 1048576.0 => format!("{:.1} MiB", n / 1048576.0),
        n if n >= 1024.0 => format!("{:.1} KiB", n / 1024.0),
        n => format!("{n} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!([count(950.0), count(12_345.0), count(4.56e6)], ["950", "12.3k", "4.56M"]);
        assert_eq!([bytes(512), bytes(1536), bytes(3 << 30)], ["512 bytes", "1.5 KiB", "3.00 GiB"]);
    }
}

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

/// Returns a metric or a parameter with `decimals` digits after the point. A number that is so small that at most one of them
/// would be left, or a large one, is a power of ten.
pub fn decimal(number: f64, decimals: u8) -> String {
    const LARGE: f64 = 1e9;
    let (size, smallest) = (number.abs(), 10.0 * 0.1_f64.powi(decimals.into()));
    match size {
        _ if size >= LARGE => format!("{number:.*e}", decimals.into()),
        _ if size < smallest && size > 0.0 => format!("{number:.1e}"),
        _ => format!("{number:.*}", decimals.into()),
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
        assert_eq!(
            [0.0, 0.5, -12.25, 0.00012].map(|n| decimal(n, 5)),
            ["0.00000", "0.50000", "-12.25000", "0.00012"]
        );
        assert_eq!([0.5, 0.000012].map(|n| decimal(n, 6)), ["0.500000", "0.000012"]);
        assert_eq!([5.8e75, -5.8e75].map(|n| decimal(n, 5)), ["5.80000e75", "-5.80000e75"]);
        assert_eq!([9.4e-5, -3.2123e-7, 4.9e-324].map(|n| decimal(n, 5)), ["9.4e-5", "-3.2e-7", "4.9e-324"]);
        assert_eq!(decimal(f64::NAN, 5), "NaN");
        assert_eq!([bytes(512), bytes(1536), bytes(3 << 30)], ["512 bytes", "1.5 KiB", "3.00 GiB"]);
    }
}

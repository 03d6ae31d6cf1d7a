//! Marks a test that cannot run on this machine as skipped. Test files of other crates include this file by its path.

use std::io::Write as _;

/// Reports that this test is skipped, and why. `cargo xtask ci` reads the report; its last line names all skipped
/// tests.
pub(crate) fn skip(reason: &str) {
    println!("skipped: {reason}");
    let Some(path) = std::env::var_os("SERAPHIM_SKIPPED") else { return };
    let thread = std::thread::current();
    let line = format!("{}\t{reason}\n", thread.name().unwrap_or("a test"));
    let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
    file.and_then(|mut file| file.write_all(line.as_bytes()))
        .expect("the file that ci has named can be written");
}

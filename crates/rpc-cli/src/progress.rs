//! A progress bar for files that are sent or fetched.

use indicatif::{ProgressBar, ProgressStyle};

const TEMPLATE: &str =
    "{msg} {wide_bar} {bytes}/{total_bytes} {binary_bytes_per_sec} {eta_precise}";

/// Shows on standard error, if that is a terminal, how `transfer` gets on: it is handed what has to be
/// told the bytes that are done and how many there are in all.
pub(crate) fn with_bar<T>(
    title: &str,
    transfer: impl FnOnce(&mut (dyn FnMut(u64, u64) + Send)) -> T,
) -> T {
    let style = ProgressStyle::with_template(TEMPLATE);
    let bar = ProgressBar::new(0)
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        .with_message(title.to_owned());
    let result = transfer(&mut |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_template_is_valid() {
        ProgressStyle::with_template(TEMPLATE).unwrap();
    }
}

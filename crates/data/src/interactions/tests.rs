//! Tests of `interactions.rs`.

use super::*;
use crate::format::testing::{read_whole, rows};
use crate::input::HEAD_BYTES;
use crate::options::FormatOptions;
use crate::{FormatTable, Input, Source, SourceConfig};
use math::hash::named_key;

fn options(interactions: &[&str]) -> FormatOptions {
    let interactions = interactions.iter().map(|text| parse_interaction(text)).collect();
    FormatOptions { interactions, ..FormatOptions::default() }
}

/// The entries of the first record, sorted.
fn entries(format: &str, interactions: &[&str], text: &str) -> Vec<(u64, f32)> {
    let mut entries = rows(format, &options(interactions), text).unwrap().remove(0).entries;
    entries.sort_by_key(|entry| entry.0);
    entries
}

fn expected(mut entries: Vec<(u64, f32)>) -> Vec<(u64, f32)> {
    entries.sort_by_key(|entry| entry.0);
    entries
}

fn key(space: &str, name: &str) -> u64 {
    named_key(space.as_bytes(), name.as_bytes())
}

#[test]
fn namespaces_are_multiplied_by_first_letter_or_name() {
    let (rome, red, blue) = (key("user", "Rome"), key("item", "red"), key("item", "blue"));
    let plain = [(rome, 2.0), (red, 3.0), (blue, 1.0)];
    let pairs = [(product_key(&[rome, red]), 6.0), (product_key(&[rome, blue]), 2.0)];
    let line = "1 |user Rome:2 |item red:3 blue";
    for interactions in [&["ui"][..], &["iu"], &["ui", "iu"], &["user:item"], &["u:item"]] {
        assert_eq!(
            entries("vw", interactions, line),
            expected([&plain[..], &pairs].concat()),
            "{interactions:?}"
        );
    }
    let all = [
        (product_key(&[rome, rome]), 4.0),
        (product_key(&[red, red]), 9.0),
        (product_key(&[red, blue]), 3.0),
    ];
    assert_eq!(entries("vw", &["::"], line), expected([&plain[..], &pairs, &all].concat()));
    let itself = [(product_key(&[red, red]), 9.0), (product_key(&[red, blue]), 3.0)];
    assert_eq!(entries("vw", &["ii"], line), expected([&plain[..], &itself].concat()));
    let (a, b, c) = (key("item", "a"), key("item", "b"), key("item", "c"));
    let pairs = [[a, b], [a, c], [b, c]].map(|pair| (product_key(&pair), 1.0));
    let words = [(a, 1.0), (b, 1.0), (c, 1.0)];
    assert_eq!(entries("vw", &["ii"], "1 |item a b c"), expected([&words[..], &pairs].concat()));
    let cubic = [(product_key(&[rome, red, blue]), 6.0), (product_key(&[rome, red, red]), 18.0)];
    assert_eq!(entries("vw", &["uii"], line), expected([&plain[..], &cubic].concat()));
}

#[test]
fn a_group_without_a_feature_is_an_error_if_the_whole_input_was_searched() {
    let line = "1 |user Rome:2 |item red:3 blue";
    for (format, interaction, text, name) in [
        ("vw", "ux", line, "'x'"),
        ("vw", "user:itme", line, "'itme'"),
        ("libffm", "0:5", "1 0:7:2\n", "'5'"),
    ] {
        let error = rows(format, &options(&[interaction]), text).unwrap_err();
        assert!(
            matches!(&error, Error::BadOption { option: "interactions", reason } if reason.contains(name)),
            "{error}"
        );
    }
    let late = format!("{}1 |rare x\n", "1 |user Rome\n".repeat(500));
    assert_eq!(rows("vw", &options(&["user:rare"]), &late).unwrap().len(), 501);
    let large = "1 |user a |item b\n".repeat(HEAD_BYTES / 15);
    assert!(notices("user:itme", &large).contains("the first lines have no feature of 'itme'"));
    assert_eq!([notices("user:item", &large), notices("ui", &large)], ["", ""]);
}

fn notices(interaction: &str, text: &str) -> String {
    let config = SourceConfig {
        format: Some("vw".to_owned()),
        options: options(&[interaction]),
        ..SourceConfig::default()
    };
    let input = Input::memory("file".to_owned(), text.as_bytes().to_vec()).unwrap();
    let source = Source::from_inputs(vec![input], &config, None, &FormatTable::builtin()).unwrap();
    source.notices().join("; ")
}

#[test]
fn interactions_that_no_record_has_are_told() {
    let unmet = |text: &str| {
        let config = SourceConfig {
            format: Some("vw".to_owned()),
            options: options(&["ab", "ac"]),
            ..SourceConfig::default()
        };
        let input = Input::memory("file".to_owned(), text.as_bytes().to_vec()).unwrap();
        let source = Source::from_inputs(vec![input], &config, None, &FormatTable::builtin()).unwrap();
        read_whole(&source).summary().unmet_interactions.clone()
    };
    assert_eq!(unmet("1 |a x |b y\n0 |c z\n"), ["a:c"]);
    assert!(unmet("1 |a x |b y\n0 |a x |c z\n").is_empty());
}

#[test]
fn columns_are_multiplied_by_name() {
    let rome = key("city", "Rome");
    let text = "city,size,z,y\nRome,2,0,1\n";
    let plain = [(rome, 1.0), (1, 2.0)];
    let pair = [(product_key(&[rome, 1]), 2.0)];
    for interactions in
        [&["city:size"][..], &["size:city"], &["0:1"], &["city:size", "city:z"], &["city:size", "city:city"]]
    {
        assert_eq!(
            entries("csv", interactions, text),
            expected([&plain[..], &pair].concat()),
            "{interactions:?}"
        );
    }
    for (interactions, words) in [
        ("city:sice", "did you mean 'size'"),
        ("city:y", "not a feature"),
        ("c", "1 factors"),
        ("abcd", "4 factors"),
    ] {
        let error = rows("csv", &options(&[interactions]), text).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    let error = rows("libsvm", &options(&["ab"]), "1 1:1\n").unwrap_err().to_string();
    assert!(error.contains("libsvm") && error.contains("interactions"), "{error}");
}

#[test]
fn fields_are_multiplied_by_number() {
    let pair = product_key(&[7, 9]);
    let row = rows("libffm", &options(&["0:12"]), "1 0:7:2 12:9:3 3:4:1\n").unwrap().remove(0);
    assert_eq!(row.entries, [(7, 2.0), (9, 3.0), (4, 1.0), (pair, 6.0)]);
    assert_eq!(row.fields, [0, 12, 3, 0]);
    let error = rows("libffm", &options(&["ab"]), "1 0:7:2\n").unwrap_err().to_string();
    assert!(error.contains("'a'") && error.contains("number of a field"), "{error}");
}

#[test]
fn products_beyond_the_range_and_too_many_of_them_are_bad_lines() {
    let error = rows("vw", &options(&["ab"]), "1 |a x:1e30 |b y:1e30\n").unwrap_err().to_string();
    assert!(error.contains("within the range"), "{error}");
    let many = (0..1500).fold(String::new(), |text, i| text + &format!(" f{i}"));
    let error = rows("vw", &options(&["ab"]), &format!("1 |a{many} |b{many}\n")).unwrap_err().to_string();
    assert!(error.contains("at most 1048576 interactions"), "{error}");
    let product_count = |factors: usize| {
        let interactions = Interactions::new(&options(&["ab"]).interactions).unwrap();
        let mut generator = InteractionGenerator::new(interactions, false);
        (0..factors).for_each(|key| generator.add(0, key as u64, 1.0, String::new));
        (0..1024).for_each(|key| generator.add(1, 5000 + key, 1.0, String::new));
        let mut count = 0;
        generator.multiply(&mut Dictionary::default(), |_, _, _| count += 1).map(|()| count)
    };
    assert_eq!(product_count(1024).unwrap(), 1 << 20, "as many as there may be");
    assert!(product_count(1025).is_err());
}

#[test]
fn a_product_is_named_after_its_factors() {
    for (format, interaction, text, name) in [
        ("vw", "ui", "1 |user Rome |item red\n", "user^Rome*item^red"),
        ("csv", "city:size", "city,size,y\nRome,2,1\n", "city=Rome*size"),
        ("libffm", "0:12", "1 0:7:2 12:9:3\n", "7*9"),
    ] {
        let config = SourceConfig {
            format: Some(format.to_owned()),
            options: options(&[interaction]),
            ..SourceConfig::default()
        };
        let input = Input::memory("file".to_owned(), text.as_bytes().to_vec()).unwrap();
        let source = Source::from_inputs(vec![input], &config, None, &FormatTable::builtin()).unwrap();
        let names = read_whole(&source).take_dictionary();
        let names: Vec<&str> = names.iter().map(|(_, name)| name).collect();
        assert!(names.contains(&name), "{format}: {names:?}");
    }
}

#[test]
fn factors_have_names_up_to_the_limit() {
    let interactions = Interactions::new(&options(&["ab"]).interactions).unwrap();
    let mut generator = InteractionGenerator::new(interactions, false);
    let (mut named, count) = (0, 10);
    for key in 0..count {
        generator.add(0, key, 1.0, || {
            named += 1;
            "x".repeat(LIMIT_BYTES / 4)
        });
    }
    assert!((3..=4).contains(&named), "{named} of {count} names");
    generator.add(1, count, 1.0, || panic!("there is no memory for this name"));
    let mut dictionary = Dictionary::default();
    generator.multiply(&mut dictionary, |_, _, _| {}).unwrap();
    assert_eq!(dictionary.notices().len(), 1, "products of factors without names have none");
}

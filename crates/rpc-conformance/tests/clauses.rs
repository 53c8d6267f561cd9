//! The specification and the cases fit each other: every clause is checked by a case or says why not,
//! every case cites a clause that says what it checks, and the page about it is what it should be.
#![allow(
    clippy::unwrap_used,
    reason = "the lint spares test functions, not their helpers"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use rpc_conformance::{Case, Level, cases, untested};

/// A clause of the specification.
#[derive(Debug)]
struct Clause {
    number: String,
    level: Level,
    page: String,
    sentence: String,
}

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// All clauses, in the order of the chapters.
fn clauses() -> Vec<Clause> {
    let mut pages: Vec<_> = fs::read_dir(docs().join("spec"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    pages.sort_by_key(|page| chapter(page));
    pages.iter().flat_map(|page| clauses_of(page)).collect()
}

fn chapter(page: &Path) -> u32 {
    let name = page.file_name().unwrap().to_str().unwrap();
    name.split('-')
        .next()
        .unwrap()
        .parse()
        .unwrap_or_else(|_| panic!("{name} begins with no number"))
}

fn clauses_of(page: &Path) -> Vec<Clause> {
    let name = page.file_name().unwrap().to_str().unwrap();
    let text = fs::read_to_string(page).unwrap();
    let paragraphs = text
        .split("\n\n")
        .filter(|paragraph| paragraph.starts_with("<a id=\""));
    paragraphs
        .map(|paragraph| clause(name, paragraph))
        .collect()
}

/// `<a id="2.3.4"></a>**2.3.4** A tracker MUST …`
fn clause(page: &str, paragraph: &str) -> Clause {
    let number = paragraph.split('"').nth(1).unwrap().to_owned();
    let start = format!("<a id=\"{number}\"></a>**{number}** ");
    let rest = paragraph
        .strip_prefix(&start)
        .unwrap_or_else(|| panic!("{page}: {paragraph}"));
    let keywords: Vec<_> = rest
        .split(|c: char| !c.is_alphanumeric())
        .filter_map(level)
        .collect();
    let [level] = keywords[..] else {
        panic!("{page} {number} has not one keyword but {keywords:?}: {rest}");
    };
    let sentence = rest.replace('\n', " ");
    let end = sentence.find(". ").map_or(sentence.len(), |end| end + 1);
    Clause {
        number,
        level,
        page: page.to_owned(),
        sentence: sentence[..end].to_owned(),
    }
}

fn level(word: &str) -> Option<Level> {
    match word {
        "MUST" => Some(Level::Must),
        "SHOULD" => Some(Level::Should),
        "MAY" => Some(Level::May),
        _ => None,
    }
}

#[test]
fn numbers_are_in_their_place() {
    let mut seen = BTreeSet::new();
    for clause in clauses() {
        let chapter = clause.page.split('-').next().unwrap().to_owned() + ".";
        assert!(
            clause.number.starts_with(&chapter),
            "{} in {}",
            clause.number,
            clause.page
        );
        assert!(
            seen.insert(clause.number.clone()),
            "{} is there twice",
            clause.number
        );
    }
    assert!(seen.len() > 100, "{} clauses", seen.len());
}

#[test]
fn every_case_cites_a_clause_that_binds_as_much() {
    let clauses: BTreeMap<_, _> = clauses()
        .into_iter()
        .map(|clause| (clause.number.clone(), clause))
        .collect();
    let mut wrong = Vec::new();
    for case in cases() {
        match clauses.get(case.clause) {
            None => wrong.push(format!(
                "{} cites {}, which is not there",
                case.id, case.clause
            )),
            // What the reference does besides binds nobody, whatever the clause is about.
            Some(clause) if case.level != clause.level && case.level != Level::Quirk => {
                wrong.push(format!(
                    "{} is {}, its clause {} {}",
                    case.id, case.level, case.clause, clause.level
                ));
            }
            Some(_) => {}
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_clause_is_checked_or_says_why_not() {
    let checked: BTreeSet<_> = cases().map(|case| case.clause).collect();
    let excluded: BTreeSet<_> = untested().map(|(clause, _)| *clause).collect();
    let mut wrong = Vec::new();
    for clause in clauses() {
        let number = clause.number.as_str();
        match (checked.contains(number), excluded.contains(number)) {
            (false, false) => wrong.push(format!(
                "{number} is checked by no case: {}",
                clause.sentence
            )),
            (true, true) => wrong.push(format!("{number} is checked, and listed as untested")),
            _ => {}
        }
    }
    let numbers: BTreeSet<_> = clauses().into_iter().map(|clause| clause.number).collect();
    for number in excluded {
        if !numbers.contains(number) {
            wrong.push(format!("{number} is listed as untested, and is not there"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn ids_are_unique_and_well_formed() {
    let mut seen = BTreeSet::new();
    for case in cases() {
        assert!(seen.insert(case.id), "{} is there twice", case.id);
        let parts: Vec<_> = case.id.split('-').collect();
        let [role, area, number] = parts[..] else {
            panic!("{}", case.id)
        };
        assert!(["TRK", "SRV", "CLI"].contains(&role), "{}", case.id);
        assert!(
            area.bytes().all(|byte| byte.is_ascii_uppercase()),
            "{}",
            case.id
        );
        assert!(
            number.len() == 3 && number.parse::<u16>().is_ok(),
            "{}",
            case.id
        );
        for text in [case.what, case.why] {
            assert!(
                text.ends_with('.') && text.len() > 10,
                "{}: {text:?}",
                case.id
            );
        }
    }
}

#[test]
fn there_are_hundreds() {
    assert!(cases().count() >= 200, "{}", cases().count());
}

/// `docs/conformance/coverage.md`. With `UPDATE_PAGES=1` in the environment it is written anew.
#[test]
fn the_coverage_page_is_true() {
    let page = docs().join("conformance/coverage.md");
    let wanted = coverage(&clauses(), &cases().collect::<Vec<_>>());
    if std::env::var_os("UPDATE_PAGES").is_some() {
        fs::create_dir_all(page.parent().unwrap()).unwrap();
        fs::write(&page, &wanted).unwrap();
    }
    let found = fs::read_to_string(&page).unwrap_or_default();
    assert!(
        found == wanted,
        "run it with UPDATE_PAGES=1 to write {}",
        page.display()
    );
}

fn coverage(clauses: &[Clause], cases: &[&Case]) -> String {
    let reasons: BTreeMap<_, _> = untested().copied().collect();
    let mut page = String::from(
        "# Which case checks which clause\n\n\
         Made from the specification and the cases by a test of `rpc-conformance`, which fails when this \
         page is not up to date.\n",
    );
    let _ = writeln!(page, "\n{} clauses, {} cases.", clauses.len(), cases.len());
    let mut last = "";
    for clause in clauses {
        if clause.page != last {
            last = &clause.page;
            let _ = writeln!(
                page,
                "\n## [{last}](../spec/{last})\n\n| clause | level | cases |\n| --- | --- | --- |"
            );
        }
        let ids: Vec<_> = cases
            .iter()
            .filter(|case| case.clause == clause.number)
            .map(|case| case.id)
            .collect();
        let by = match reasons.get(clause.number.as_str()) {
            Some(reason) => format!("none: {reason}"),
            None => ids.join(", "),
        };
        let _ = writeln!(
            page,
            "| [{0}](../spec/{last}#{0}) | {1} | {by} |",
            clause.number, clause.level
        );
    }
    page
}

//! The same figures as SciPy's (`oracle/make.py` made `oracle/expected.json`).

use serde_json::Value;

use crate::{rank, steady, student};

fn expected() -> Value {
    serde_json::from_str(include_str!("../../oracle/expected.json")).unwrap()
}

fn floats(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

fn near(ours: f64, theirs: &Value, what: &str) {
    let theirs = theirs.as_f64().unwrap();
    assert!((ours - theirs).abs() <= 1e-9 * theirs.abs().max(1.0), "{what}: {ours} is not {theirs}");
}

#[test]
fn t_quantiles() {
    for row in expected()["t_quantiles"].as_array().unwrap() {
        let row = floats(row);
        let ours = student::t_quantile(row[0], row[1]);
        assert!((ours / row[2] - 1.0).abs() < 1e-9, "t({}; {}) = {ours}, not {}", row[0], row[1], row[2]);
    }
}

#[test]
fn one_sample_intervals() {
    for case in expected()["one_sample"].as_array().unwrap() {
        let x = floats(&case["x"]);
        let what = format!("n = {}", x.len());
        let t = student::one_sample(&x, 0.05).unwrap().ends.unwrap();
        near(t.0, &case["t_low"], &what);
        near(t.1, &case["t_high"], &what);
        if case.get("low").is_some() {
            let ours = rank::signed_rank(&x, 0, 0.05).unwrap();
            near(ours.value, &case["hodges_lehmann"], &what);
            near(ours.ends.unwrap().0, &case["low"], &what);
            near(ours.ends.unwrap().1, &case["high"], &what);
        }
    }
}

#[test]
fn two_sample_intervals() {
    for case in expected()["two_sample"].as_array().unwrap() {
        let (x, y) = (floats(&case["x"]), floats(&case["y"]));
        let what = format!("{} and {}", x.len(), y.len());
        let ours = rank::mann_whitney(&x, &y, 0.05).unwrap();
        near(ours.value, &case["shift"], &what);
        match ours.ends {
            Some((low, high)) => {
                near(low, &case["low"], &what);
                near(high, &case["high"], &what);
            }
            None => assert!(case["low"].is_null(), "{what}: SciPy finds an interval"),
        }
        let welch = student::welch(&x, &y, 0.05).unwrap().ends.unwrap();
        near(welch.0, &case["welch_low"], &what);
        near(welch.1, &case["welch_high"], &what);
    }
}

#[test]
fn trends() {
    for case in expected()["trend"].as_array().unwrap() {
        let (slope, p) = steady::trend(&floats(&case["y"]), 1.0).unwrap();
        near(slope, &case["slope"], "slope");
        near(p, &case["p"], "p");
    }
}

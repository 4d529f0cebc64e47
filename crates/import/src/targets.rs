//! Which part of all requests each type was to be: the tables of the published workload, percent.

/// Target share of a request type, 0 to 1; `None` of one that the tables do not have.
pub(crate) fn share(workload: &str, request_type: &str) -> Option<f64> {
    let table: &[(&str, f64)] = match workload {
        "banking" => &BANKING,
        "ecommerce" => &ECOMMERCE,
        "support" => &SUPPORT,
        _ => return None,
    };
    table.iter().find(|(name, _)| *name == request_type).map(|(_, percent)| percent / 100.0)
}

const BANKING: [(&str, f64); 16] = [
    ("login", 21.5280),
    ("account_summary", 15.1146),
    ("check_detail_html", 8.4470),
    ("bill_pay", 13.8908),
    ("add_payee", 1.1163),
    ("payee_info", 0.8043),
    ("quick_pay", 6.6746),
    ("billpay_status", 2.2281),
    ("chg_profile", 1.2165),
    ("post_profile", 0.8761),
    ("req_checks", 1.2155),
    ("post_chk_order", 0.8784),
    ("req_xfer_form", 1.7146),
    ("post_fund_xfer", 1.2415),
    ("logout", 6.1597),
    ("check_image", 16.8940),
];

const ECOMMERCE: [(&str, f64); 13] = [
    ("index", 13.0834),
    ("search", 6.5461),
    ("browse", 11.7532),
    ("browse_productline", 10.0270),
    ("productdetail", 8.0178),
    ("customize1", 16.9320),
    ("customize2", 8.9483),
    ("customize3", 6.1558),
    ("cart", 5.2968),
    ("login", 3.7778),
    ("shipping", 3.5525),
    ("billing", 3.3743),
    ("confirm", 2.5350),
];

const SUPPORT: [(&str, f64); 7] = [
    ("home", 8.1072),
    ("search", 12.6125),
    ("catalog", 11.7088),
    ("product", 24.7746),
    ("fileCatalog", 22.5237),
    ("file", 13.5135),
    ("download", 6.7597),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_table_is_a_whole() {
        for table in [&BANKING[..], &ECOMMERCE[..], &SUPPORT[..]] {
            let sum: f64 = table.iter().map(|(_, percent)| percent).sum();
            assert!((sum - 100.0).abs() < 0.01, "{sum}");
        }
        assert_eq!((share("banking", "index"), share("shop", "login")), (None, None));
    }
}

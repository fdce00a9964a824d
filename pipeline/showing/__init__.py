"""What the audits, the reports and the conformance report share: texts, pages, plots."""

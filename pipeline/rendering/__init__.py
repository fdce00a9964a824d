"""Rendering for the audits, the reports and the conformance report: texts, pages, plots."""

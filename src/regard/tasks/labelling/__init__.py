"""Labels of sequences: classification, regression, tagging."""

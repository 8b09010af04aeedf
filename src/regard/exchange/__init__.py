"""Networks of other packages read as ours, and ours written as theirs: folders of Hugging Face's transformers."""

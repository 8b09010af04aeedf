"""What `regard` alone says: what most people need, as commands that run."""

OVERVIEW = """\
regard: build, train, look inside and serve Transformers of your own.

See it work, offline, in a few minutes:
  regard demo

Train a translator on your own text (two aligned files, or TSV, CSV, JSONL, TMX, XLIFF, PO, Parquet):
  regard data check train.en train.de
  regard train translate --train train.en train.de --dry-run
  regard train translate --train train.en train.de --run runs/mine
  regard resume runs/mine

Or a language model, on any text:
  regard train language --train book.txt --run runs/book
  regard generate runs/book "Once upon"

Use a translator:
  regard translate runs/mine "Two men are playing chess."
  regard translate runs/mine < input.en > output.de

See what it reached:
  regard evaluate runs/mine --data test.en test.de
  regard compare runs/mine runs/other --data test.en test.de
  regard runs
  regard show runs/mine
  regard plot runs/mine

All commands: regard --help. One of them: regard train --help."""

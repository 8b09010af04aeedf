"""What `regard` alone says: what most people need, as commands that run."""

OVERVIEW = """\
regard: build, train and look inside Transformers of your own.

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

Or a classifier (tag and regress likewise), pre-trained on text without labels if there is any:
  regard train mask --train text.txt --run runs/words
  regard train classify --train reviews.csv --init runs/words --run runs/mood
  regard predict runs/mood "A lovely film."

Or an image classifier (caption likewise, from a table of images and captions):
  regard train image --train photos/ --model resnet-20 --run runs/photos
  regard predict runs/photos photo.jpg

Use a translator:
  regard translate runs/mine "Two men are playing chess."
  regard translate runs/mine < input.en > output.de

See what it reached:
  regard evaluate runs/mine --data test.en test.de
  regard compare runs/mine runs/other --data test.en test.de
  regard runs
  regard show runs/mine
  regard plot runs/mine

All commands: regard --help. One of them: regard predict --help. One task: regard train translate --help."""

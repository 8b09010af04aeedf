"""The synchronous grammar behind `regard.demo.corpus`: words, their forms, clauses, sentence patterns."""

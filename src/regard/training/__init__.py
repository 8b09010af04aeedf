"""One loop for every model: the steps, the optimizer, the schedules, and the assembler that makes a run of them."""

"""What users start: the command line, the live board, and the runs behind them."""

"""Uses a model dir as users of google/LaBSE/2 do; verification.py runs it as a program."""

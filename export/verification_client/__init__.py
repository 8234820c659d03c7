"""Does with a model dir what users of google/LaBSE/2 do; run by verification.py as a program."""

"""The demo corpus: openly licensed translations that ship with installed Python packages.

* `packages.py`: the packages, where their files are, and their licences.
* `catalogues.py`: gettext catalogues -> raw pairs of English and another language.
* `names.py`: CLDR's names of languages, territories, ... -> raw pairs.
* `cleaning.py`: raw pair -> two clean sentences, or nothing.
* `split.py`: clean pairs -> training pairs and held-out pairs that share no sentence.
* `write.py`: runs all of this and writes the result to a folder.

There are two kinds of pairs: messages (shown by a program to its users, about half of them
sentences) and names (of languages, countries, currencies, ...). Names are many and short, and cover
languages that none of the programs is translated into; they are used for training only. All
held-out pairs are messages.
"""

"""The demo corpus: openly licensed translations that installed Python packages carry.

* `packages.py`: which packages, where their files lie, under which licence.
* `catalogues.py`: gettext catalogues -> raw pairs of English and another language.
* `names.py`: CLDR's names of languages, territories, ... -> raw pairs.
* `cleaning.py`: raw pair -> two clean sentences, or nothing.
* `split.py`: clean pairs -> training pairs and held-out pairs that share no sentence.
* `write.py`: all of it, written to a folder.

Two kinds of pairs come out: messages (what a program says to its users, about half of them
sentences) and names (of languages, countries, currencies, ...). Names are many, short and reach
languages that no program is translated into; they are only ever trained on. Held-out pairs are
messages.
"""

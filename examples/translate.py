"""The translation of a text.   translate.py models/en-de "Good morning. How are you?" """

import sys

import heed

if len(sys.argv) != 3:
    sys.exit("translate.py MODEL TEXT")
try:
    model = heed.load(sys.argv[1])
    print(model.translate(sys.argv[2], beam=4))
except heed.Error as error:
    sys.exit(f"{error} ({error.code})")

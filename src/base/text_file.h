// Moved: the command reads the same files.
#pragma once

#include "heed/text_file.h"

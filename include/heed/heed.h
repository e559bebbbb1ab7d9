// All of Heed in one include.
//
//   #include <heed/heed.h>
//
//   heed::Translator german(heed::Model::load("models/en-de"));       // C++
//   heed_open("models/en-de", NULL, &model);                          // C
//
// For C++ it brings every header below; for C it is heed/c_api.h. Programs that care about compile time include the
// headers they need.
#ifndef HEED_HEED_H
#define HEED_HEED_H

#include "heed/c_api.h"

#ifdef __cplusplus
#include "heed/attend.h"
#include "heed/engine.h"
#include "heed/error.h"
#include "heed/metrics.h"
#include "heed/model.h"
#include "heed/model_files.h"
#include "heed/search.h"
#include "heed/sweep.h"
#include "heed/tasks.h"
#include "heed/tokenizer.h"
#include "heed/train.h"
#include "heed/translate.h"
#include "heed/version.h"
#endif

#endif

#include "model/hugging_face/hf_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace heed {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

HfFields reading(const char* json) { return HfFields(Json::parse(json), nullptr); }

TEST(HfFields, AbsentAndNullMeanTheFallback) {
  HfFields f = reading(R"({"given": 3, "empty": null})");
  int64_t given = 0, empty = 0, absent = 0;
  f.value({"given"}, given, 7);
  f.value({"empty"}, empty, 7);
  f.value({"absent"}, absent, 7);
  EXPECT_THAT((std::vector<int64_t>{given, empty, absent}), ElementsAre(3, 7, 7));
  EXPECT_THAT(f.problems(), IsEmpty());
}

TEST(HfFields, TheFirstNameThatIsThereCounts) {
  HfFields f = reading(R"({"n_embd": null, "hidden_size": 5})");
  int64_t width = 0;
  f.value({"n_embd", "hidden_size", "d_model"}, width, 9);
  EXPECT_EQ(width, 5);
}

TEST(HfFields, NullHasAMeaningOfItsOwnWhereOneIsGiven) {
  HfFields f = reading(R"({"a": null})");
  int64_t a = -1, b = -1;
  f.nullable({"a"}, a, /*absent=*/4096, /*null=*/0);
  f.nullable({"b"}, b, /*absent=*/4096, /*null=*/0);
  EXPECT_EQ(a, 0);
  EXPECT_EQ(b, 4096);
}

TEST(HfFields, WhatItCannotFollowIsAProblemAndNoGuess) {
  HfFields f = reading(R"({"size": 0, "word": 5, "huge": 4294967296, "act": "mish",
                           "wanted": "absolute", "other": "relative"})");
  int64_t size = 0, huge = 0;
  bool word = false;
  Activation activation = Activation::relu;
  f.size({"size"}, size, 8);
  f.value({"word"}, word, true);
  f.value({"huge"}, huge, 1);
  f.value({"act"}, activation, Activation::gelu);
  f.expect("wanted", "absolute");
  f.expect("other", "absolute");
  f.expect("absent", "absolute");
  EXPECT_THAT(f.problems(),
              ElementsAre(HasSubstr("size is 0"), HasSubstr("word is 5"),
                          HasSubstr("huge is 4294967296"), HasSubstr("act is \"mish\""),
                          HasSubstr("other is \"relative\", supported: \"absolute\"")));
}

TEST(HfFields, KeysThatNobodyAskedForRemain) {
  HfFields f = reading(R"({"b": 1, "a": 2, "c": null})");
  int b = 0;
  f.value({"b"}, b, 0);
  f.find("c");
  EXPECT_THAT(f.unread(), ElementsAre("a"));
}

TEST(HfFields, AnIdIsANumberOrTheFirstOfAList) {
  HfFields f = reading(R"({"one": 4, "list": [7, 8], "none": null, "text": "x"})");
  int one = 0, list = 0, none = 0, absent = 0, text = 0;
  f.id("one", one, 1);
  f.id("list", list, 1);
  f.id("none", none, 1);
  f.id("absent", absent, 1);
  f.id("text", text, 1);
  EXPECT_THAT((std::vector<int>{one, list, none, absent}), ElementsAre(4, 7, -1, 1));
  EXPECT_THAT(f.problems(), ElementsAre(HasSubstr("text is \"x\"")));
}

TEST(HfFields, OneProbabilityStandsForSeveral) {
  HfFields f = reading(R"({"dropout": 0.25})");
  float a = 0, b = 0;
  f.dropout("dropout", {&a, &b}, 0.1f);
  EXPECT_EQ(a, 0.25f);
  EXPECT_EQ(b, 0.25f);
}

TEST(HfFields, ReadsManyNamesOfAnActivationAndWritesOne) {
  for (const char* name : {"gelu_new", "gelu_pytorch_tanh", "gelu_fast"}) {
    HfFields f(Json{{"act", name}}, nullptr);
    Activation activation = Activation::none;
    f.value({"act"}, activation, Activation::relu);
    EXPECT_EQ(activation, Activation::gelu_tanh) << name;
  }
  HfFields out;
  Activation activation = Activation::gelu_tanh;
  out.value({"act"}, activation, Activation::relu);
  EXPECT_EQ(out.json()["act"], "gelu_new");
}

TEST(HfFields, EveryActivationCanBeWrittenAndRead) {
  for (const kernels::ActivationInfo& info : kernels::kActivations) {
    if (info.activation == Activation::none) continue;
    HfFields out;
    Activation written = info.activation, read = Activation::none;
    out.value({"act"}, written, Activation::none);
    HfFields in(out.json(), nullptr);
    in.value({"act"}, read, Activation::none);
    EXPECT_EQ(read, info.activation) << info.name;
  }
}

TEST(HfFields, WritesWhatItWouldRead) {
  ModelConfig c;
  c.width = 24, c.tying = Tying::none, c.bos_id = -1, c.eos_id = 5;
  int64_t window = 0;
  const auto text = [&](HfFields& f, ModelConfig& config) {
    f.value({"hidden_size", "n_embd"}, config.width, 768);
    f.choice("tied", config.tying, Tying::all, Tying::none, true);
    f.nullable({"window"}, window, 4096, 0);
    f.id("bos", config.bos_id, 1);
    f.id("eos", config.eos_id, -1);
    f.always("norm", config.norm, NormKind::layer_norm);
  };
  HfFields out;
  text(out, c);
  EXPECT_THAT(out.problems(), IsEmpty());
  EXPECT_EQ(out.json(), Json::parse(R"({"hidden_size": 24, "tied": false, "window": null,
                                        "bos": null, "eos": 5})"));
  ModelConfig again;
  HfFields in(out.json(), nullptr);
  window = -1;
  text(in, again);
  EXPECT_EQ(again.width, 24);
  EXPECT_EQ(again.tying, Tying::none);
  EXPECT_EQ(again.bos_id, -1);
  EXPECT_EQ(again.eos_id, 5);
  EXPECT_EQ(window, 0);
  EXPECT_THAT(in.unread(), IsEmpty());
}

TEST(HfFields, SaysWhatTheArchitectureCannot) {
  ModelConfig c;
  c.norm = NormKind::rms_norm, c.tying = Tying::source_target;
  HfFields out;
  out.always("norm", c.norm, NormKind::layer_norm);
  out.choice("tied", c.tying, Tying::all, Tying::none, true);
  EXPECT_THAT(out.problems(), ElementsAre("norm", "tied"));
}

}  // namespace
}  // namespace heed

// What BLEU counts as a token: sacreBLEU's tokenizers, each a text in, a text with spaces out.
#pragma once

#include <string>
#include <string_view>

namespace heed {

using BleuTokenizer = std::string (*)(std::string_view text);

// By its name in the signature: 13a, intl, zh, char, none. Others throw invalid_argument.
BleuTokenizer find_bleu_tokenizer(const std::string& name);

// mteval-v13a's rules for western text: punctuation apart, except points and commas in numbers. The
// last step of 13a and zh, and the middle of TER's normalisation.
std::string split_western_punctuation(std::string_view text);
// The parts of it, for TER, which does one thing between them.
std::string split_ascii_symbols(std::string_view text);
std::string split_points_and_dashes(std::string_view text);

// &quot; &amp; &lt; &gt; back into what they stand for.
void undo_xml_escapes(std::string& text);

}  // namespace heed

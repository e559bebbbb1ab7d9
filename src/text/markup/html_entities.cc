// Entities of HTML 4; others keep their names in the output.
#include <map>
#include <string>

#include "text/markup/html.h"
#include "text/unicode/utf8.h"

namespace heed {
namespace {

// Names in the order of their code points, which begin at `first`; "-" has none.
struct Run {
  char32_t first;
  const char* names;
};
constexpr Run kRuns[]{
    {0x22, "quot"},
    {0x26, "amp apos"},
    {0x3C, "lt"},
    {0x3E, "gt"},
    {0xA0,
     "nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn "
     "sup2 sup3 acute micro para middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave "
     "Aacute Acirc Atilde Auml Aring AElig Ccedil Egrave Eacute Ecirc Euml Igrave Iacute Icirc "
     "Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave Uacute Ucirc Uuml Yacute "
     "THORN szlig agrave aacute acirc atilde auml aring aelig ccedil egrave eacute ecirc euml "
     "igrave iacute icirc iuml eth ntilde ograve oacute ocirc otilde ouml divide oslash ugrave "
     "uacute ucirc uuml yacute thorn yuml"},
    {0x152, "OElig oelig"},
    {0x160, "Scaron scaron"},
    {0x178, "Yuml"},
    {0x192, "fnof"},
    {0x2C6, "circ"},
    {0x2DC, "tilde"},
    {0x391,
     "Alpha Beta Gamma Delta Epsilon Zeta Eta Theta Iota Kappa Lambda Mu Nu Xi Omicron Pi Rho - "
     "Sigma Tau Upsilon Phi Chi Psi Omega"},
    {0x3B1,
     "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho "
     "sigmaf sigma tau upsilon phi chi psi omega"},
    {0x3D1, "thetasym upsih"},
    {0x3D6, "piv"},
    {0x2002, "ensp emsp"},
    {0x2009, "thinsp"},
    {0x200C, "zwnj zwj lrm rlm"},
    {0x2013, "ndash mdash"},
    {0x2018, "lsquo rsquo sbquo - ldquo rdquo bdquo"},
    {0x2020, "dagger Dagger bull"},
    {0x2026, "hellip"},
    {0x2030, "permil"},
    {0x2032, "prime Prime"},
    {0x2039, "lsaquo rsaquo"},
    {0x203E, "oline"},
    {0x2044, "frasl"},
    {0x20AC, "euro"},
    {0x2111, "image"},
    {0x2118, "weierp"},
    {0x211C, "real"},
    {0x2122, "trade"},
    {0x2135, "alefsym"},
    {0x2190, "larr uarr rarr darr harr"},
    {0x21B5, "crarr"},
    {0x21D0, "lArr uArr rArr dArr hArr"},
    {0x2200, "forall - part exist - empty - nabla isin notin - ni"},
    {0x220F, "prod - sum minus"},
    {0x2217, "lowast"},
    {0x221A, "radic"},
    {0x221D, "prop infin"},
    {0x2220, "ang"},
    {0x2227, "and or cap cup int"},
    {0x2234, "there4"},
    {0x223C, "sim"},
    {0x2245, "cong"},
    {0x2248, "asymp"},
    {0x2260, "ne equiv"},
    {0x2264, "le ge"},
    {0x2282, "sub sup nsub - sube supe"},
    {0x2295, "oplus - otimes"},
    {0x22A5, "perp"},
    {0x22C5, "sdot"},
    {0x2308, "lceil rceil lfloor rfloor"},
    {0x25CA, "loz"},
    {0x2660, "spades - - clubs - hearts diams"},
};

std::map<std::string, char32_t, std::less<>> read_runs() {
  std::map<std::string, char32_t, std::less<>> names;
  for (const Run& run : kRuns) {
    char32_t c = run.first;
    std::string name;
    for (const char* p = run.names;; ++p) {
      if (*p != ' ' && *p != '\0') {
        name += *p;
        continue;
      }
      if (name != "-") names[name] = c;
      name.clear();
      ++c;
      if (*p == '\0') break;
    }
  }
  return names;
}

std::optional<char32_t> code_of(std::string_view digits) {
  const bool is_hex = digits.starts_with('x') || digits.starts_with('X');
  if (is_hex) digits.remove_prefix(1);
  if (digits.empty() || digits.size() > 8) return std::nullopt;
  char32_t code = 0;
  for (const char c : digits) {
    int digit = -1;
    if (c >= '0' && c <= '9') digit = c - '0';
    if (is_hex && c >= 'a' && c <= 'f') digit = c - 'a' + 10;
    if (is_hex && c >= 'A' && c <= 'F') digit = c - 'A' + 10;
    if (digit < 0) return std::nullopt;
    code = code * (is_hex ? 16 : 10) + static_cast<char32_t>(digit);
  }
  return code;
}

// Not controls, which HTML reads as Windows-1252, nor what UTF-8 does not encode.
bool is_character(char32_t c) {
  return c >= 0x20 && !(c >= 0x7F && c < 0xA0) && !(c >= 0xD800 && c < 0xE000) && c <= 0x10FFFF;
}

}  // namespace

std::optional<HtmlEntity> read_html_entity(std::string_view html, size_t at) {
  static const std::map<std::string, char32_t, std::less<>> names = read_runs();
  constexpr size_t kMostBytes = 40;  // the longest name of HTML 5 has 31
  const size_t end = html.substr(0, std::min(html.size(), at + kMostBytes)).find(';', at);
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view name = html.substr(at + 1, end - at - 1);
  if (name.empty()) return std::nullopt;
  HtmlEntity entity{.characters = {}, .end = end + 1};
  if (name.starts_with('#')) {
    const std::optional<char32_t> code = code_of(name.substr(1));
    if (!code) return std::nullopt;
    if (*code == '\n' || *code == '\r' || *code == '\t') entity.characters = " ";
    if (is_character(*code)) entity.characters = to_utf8(*code);
    return entity;
  }
  for (const char c : name) {
    const bool fits = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!fits) return std::nullopt;
  }
  if (const auto found = names.find(name); found != names.end()) {
    entity.characters = to_utf8(found->second);
  }
  return entity;
}

}  // namespace heed

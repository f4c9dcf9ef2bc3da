"""The declarations of `tokenmeter._library` and `tokenmeter.values` are those of tokenmeter.h: all of them, no others."""
import ctypes
import pathlib
import re
import unittest

from tokenmeter import _library, errors, values

HEADER = pathlib.Path(__file__).resolve().parents[3] / "include" / "tokenmeter.h"
ENUMS = {
    "tm_status": errors.Status,
    "tm_provenance": values.Provenance,
    "tm_token_type": values.TokenType,
    "tm_close": values.Close,
    "tm_number": values.Number,
    "tm_rate": values.Rate,
    "tm_text_value": values.TextValue,
    "tm_usage_policy": values.UsagePolicy,
}
STRUCTURES = {
    "tm_slice": _library.Slice,
    "tm_text": _library.Text,
    "tm_bytes": _library.Bytes,
    "tm_header": _library.Header,
    "tm_key_source": _library.KeySource,
    "tm_meter_options": _library.MeterOptions,
    "tm_request": _library.Request,
    "tm_begin": _library.Begin,
    "tm_prompt_tokens": _library.PromptTokens,
    "tm_output_tokens": _library.OutputStep,
} | {f"tm_{name}": _library.Handle for name in ("prices", "tenants", "meter", "exchange", "record")}
TYPES = STRUCTURES | {
    "tm_status": ctypes.c_int32,
    "int32_t": ctypes.c_int32,
    "uint16_t": ctypes.c_uint16,
    "uint32_t": ctypes.c_uint32,
    "uint64_t": ctypes.c_uint64,
    "size_t": ctypes.c_size_t,
    "double": ctypes.c_double,
    "char *": ctypes.c_char_p,
    "uint8_t *": ctypes.c_char_p,
}
CONSTANTS = {"TM_ABI": _library.ABI, "TM_HOLD_MAX": _library.HOLD_MAX, "TM_UNKNOWN": _library.UNKNOWN}
UNUSED = {"tm_text_of"} | {f"tm_exporters_{name}" for name in ("start", "address", "problems", "shutdown")}
"""A helper for C: `slice_of` does the same. The package's library is built without exporters."""
UNUSED_STRUCTURES = {"tm_exporters", "tm_exporters_options"}


def type_of(text):
    """Returns the type that a C type is declared by."""
    text = text.replace("const ", "").strip()
    if text in TYPES:
        return TYPES[text]
    if text.endswith("*"):
        return ctypes.POINTER(TYPES[text[:-1].strip()])
    raise KeyError(text)


def split(declaration):
    """Returns the type and the name of `const tm_slice *name`."""
    kind, name = re.fullmatch(r"(.*?[\s*])(\w+)", declaration.strip(), re.S).groups()
    return " ".join(kind.replace("*", " *").split()), name


class Header(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        text = re.sub(r"//[^\n]*", "", HEADER.read_text())
        cls.constants = dict(re.findall(r"^#define (TM_\w+) (\S+)$", text, re.M))
        code = re.sub(r"^#.*$", "", text, flags=re.M)
        cls.enums = {
            name: {key: int(value) for key, value in re.findall(r"(TM_\w+) = (\d+),", body)}
            for name, body in re.findall(r"^enum (tm_\w+)(.*?)^};", code, re.M | re.S)
        }
        cls.structures = {
            name: [split(field) for field in body.split(";") if field.strip()]
            for body, name in re.findall(r"^typedef struct \{(.*?)\} (tm_\w+);", code, re.M | re.S)
        }
        functions = re.findall(r"^((?:const )?\w+ \*?)(tm_\w+)\(([^;{]*)\);", code, re.M)
        cls.functions = {name: (result.strip(), arguments) for result, name, arguments in functions}

    def test_constants_are_equal(self):
        numbers = {"UINT64_MAX": 2**64 - 1}
        found = {name: numbers[value] if value in numbers else int(value) for name, value in self.constants.items()}
        self.assertEqual(found, CONSTANTS)

    def test_enums_are_equal(self):
        self.assertEqual(set(self.enums), set(ENUMS))
        for name, numbers in self.enums.items():
            with self.subTest(name):
                declared = {f"{name}_{member.name}".upper(): member.value for member in ENUMS[name]}
                self.assertEqual(declared, numbers)

    def test_structures_are_equal(self):
        self.assertEqual(set(self.structures) - UNUSED_STRUCTURES, set(STRUCTURES))
        for name in STRUCTURES:
            fields = self.structures[name]
            with self.subTest(name):
                self.assertEqual(STRUCTURES[name]._fields_, [(field, type_of(kind)) for kind, field in fields])

    def test_prototypes_are_equal(self):
        declared = {"tm_status": _library.FUNCTIONS, "const char *": _library.TEXTS}
        self.assertEqual(set(self.functions) - UNUSED, set(_library.FUNCTIONS) | set(_library.TEXTS))
        for name in set(self.functions) - UNUSED:
            with self.subTest(name):
                result, arguments = self.functions[name]
                kinds = [] if arguments == "void" else [type_of(split(argument)[0]) for argument in arguments.split(",")]
                self.assertEqual(declared[result][name], kinds)


if __name__ == "__main__":
    unittest.main()

package io.evenlag;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;

/**
 * A strict JSON reader: RFC 8259, no field twice, no unpaired surrogates, nesting up to 100.
 *
 * <p>Objects become maps in the order of the text, arrays lists, whole numbers {@link Long} or, beyond 64 bits,
 * {@link Double}, as other numbers do.
 */
final class Json {
    private static final int DEEPEST = 100;

    private final String text;
    private int at;
    private int depth;

    private Json(String text) {
        this.text = text;
    }

    /**
     * Reads one JSON value.
     *
     * @throws InvalidPlanException the text is not JSON; the message names the character
     */
    static Object read(String text) {
        Json json = new Json(text);
        Object value = json.value();
        json.space();
        if (json.at < text.length()) {
            throw json.error("the text goes on after the value");
        }
        return value;
    }

    private Object value() {
        space();
        switch (peek()) {
            case '{':
                return nested(this::object);
            case '[':
                return nested(this::array);
            case '"':
                return string();
            case 't':
                return word("true", Boolean.TRUE);
            case 'f':
                return word("false", Boolean.FALSE);
            case 'n':
                return word("null", null);
            default:
                return number();
        }
    }

    private Object nested(Supplier<?> reader) {
        if (++depth > DEEPEST) {
            throw error("the text is nested more than " + DEEPEST + " deep");
        }
        at++;
        Object value = reader.get();
        depth--;
        return value;
    }

    private Map<String, Object> object() {
        Map<String, Object> fields = new LinkedHashMap<>();
        if (ends('}')) {
            return fields;
        }
        do {
            space();
            if (peek() != '"') {
                throw error("a field's name in quotes is missing");
            }
            String name = string();
            space();
            expect(':');
            Object value = value();
            if (fields.containsKey(name)) {
                throw error("the field '" + name + "' occurs twice");
            }
            fields.put(name, value);
        } while (goesOn('}'));
        return fields;
    }

    private List<Object> array() {
        List<Object> values = new ArrayList<>();
        if (ends(']')) {
            return values;
        }
        do {
            values.add(value());
        } while (goesOn(']'));
        return values;
    }

    /** Passes the end of an empty object or array, if it is here. */
    private boolean ends(char end) {
        space();
        if (peek() != end) {
            return false;
        }
        at++;
        return true;
    }

    /** Passes a comma and returns true, or passes the end and returns false. */
    private boolean goesOn(char end) {
        space();
        if (peek() == ',') {
            at++;
            return true;
        }
        expect(end);
        return false;
    }

    private String string() {
        StringBuilder string = new StringBuilder();
        expect('"');
        for (char next = take(); next != '"'; next = take()) {
            if (next < ' ') {
                at--;
                throw error("a control character is not escaped");
            }
            string.append(next == '\\' ? escaped() : next);
        }
        for (int i = 0; i < string.length(); i++) {
            char unit = string.charAt(i);
            boolean paired = Character.isHighSurrogate(unit) && i + 1 < string.length()
                && Character.isLowSurrogate(string.charAt(i + 1));
            if (paired) {
                i++;
            } else if (Character.isSurrogate(unit)) {
                throw error("half of a character, \\u" + Integer.toHexString(unit) + ", stands alone");
            }
        }
        return string.toString();
    }

    private char escaped() {
        char next = take();
        switch (next) {
            case '"':
            case '\\':
            case '/':
                return next;
            case 'b':
                return '\b';
            case 'f':
                return '\f';
            case 'n':
                return '\n';
            case 'r':
                return '\r';
            case 't':
                return '\t';
            case 'u':
                int unit = 0;
                for (int i = 0; i < 4; i++) {
                    char digit = take();
                    int value = digit < 128 ? Character.digit(digit, 16) : -1;
                    if (value < 0) {
                        throw error("\\u must have four hexadecimal digits");
                    }
                    unit = 16 * unit + value;
                }
                return (char) unit;
            default:
                throw error("\\" + next + " is not an escape");
        }
    }

    private Object number() {
        int start = at;
        if (peek() == '-') {
            at++;
        }
        if (peek() == '0') {
            at++;
        } else {
            digits();
        }
        boolean whole = true;
        if (peek() == '.') {
            whole = false;
            at++;
            digits();
        }
        if (peek() == 'e' || peek() == 'E') {
            whole = false;
            at++;
            if (peek() == '+' || peek() == '-') {
                at++;
            }
            digits();
        }
        String number = text.substring(start, at);
        if (whole) {
            try {
                return Long.valueOf(number);
            } catch (NumberFormatException beyond64Bits) {
                return Double.valueOf(number);
            }
        }
        return Double.valueOf(number);
    }

    private void digits() {
        int start = at;
        while (peek() >= '0' && peek() <= '9') {
            at++;
        }
        if (at == start) {
            throw error(at < text.length() ? "a value is missing" : "the text ends too early");
        }
    }

    private Object word(String word, Object value) {
        if (!text.startsWith(word, at)) {
            throw error("a value is missing");
        }
        at += word.length();
        return value;
    }

    private void space() {
        while (at < text.length() && " \t\n\r".indexOf(text.charAt(at)) >= 0) {
            at++;
        }
    }

    private char peek() {
        return at < text.length() ? text.charAt(at) : '\0';
    }

    private char take() {
        if (at == text.length()) {
            throw error("the text ends too early");
        }
        return text.charAt(at++);
    }

    private void expect(char wanted) {
        if (peek() != wanted || at == text.length()) {
            throw error("'" + wanted + "' is missing");
        }
        at++;
    }

    private InvalidPlanException error(String message) {
        return new InvalidPlanException("not valid JSON (character " + (at + 1) + ": " + message + ")");
    }
}

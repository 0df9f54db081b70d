package io.evenlag;

/** A text that is not a published plan; the message names the invalid part. */
final class InvalidPlanException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    InvalidPlanException(String message) {
        super(message);
    }
}

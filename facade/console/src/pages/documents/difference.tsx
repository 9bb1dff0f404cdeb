import { wordDiff } from "./word_diff";

/** Shows a text with what was removed from it and added to it, word by word. */
export function DifferenceText({ before, after }: { before: string; after: string }) {
  return (
    <p class="said difference">
      {wordDiff(before, after).map((piece, place) =>
        piece.kind === "same" ? (
          <span key={place}>{piece.text}</span>
        ) : piece.kind === "added" ? (
          <ins key={place}>{piece.text}</ins>
        ) : (
          <del key={place}>{piece.text}</del>
        ),
      )}
    </p>
  );
}

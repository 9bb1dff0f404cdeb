// The form of a figure: pictures of the file store, or of other sites by their addresses.
import { useState } from "preact/hooks";

import { Failure } from "../../../parts/failure";
import { upload } from "../../../parts/upload";
import { FileButton } from "../../../parts/uploads";
import { formsWords } from "../../../words/documents/forms";
import type { Picture } from "../types";
import { type FieldsProps, Remove } from "./form";

const text = formsWords.pictures;
const TEXTS = ["alt", "title", "width"] as const;

export function PictureFields({ block, provide }: FieldsProps) {
  const [pictures, setPictures] = useState<Picture[]>(block.image ?? []);
  const [error, setError] = useState<unknown>();
  provide(() => ({ image: pictures }));

  async function add(files: File[]): Promise<void> {
    setError(undefined);
    for (const file of files) {
      try {
        const { id } = await upload(file, { purpose: "vision" });
        setPictures((list) => [...list, { fileId: id, alt: file.name }]);
      } catch (failure) {
        setError(failure);
      }
    }
  }

  function change(at: number, name: keyof Picture, value: string): void {
    setPictures(
      pictures.map((picture, place) => {
        if (place !== at) return picture;
        const { [name]: _, ...rest } = picture;
        return value === "" ? rest : { ...rest, [name]: value };
      }),
    );
  }

  return (
    <>
      {pictures.map((picture, place) => (
        <fieldset key={place}>
          <legend>{text.picture(place + 1)}</legend>
          {picture.fileId === undefined ? (
            <label>
              {text.address}
              <input
                type="url"
                value={picture.url ?? ""}
                onInput={(event) => change(place, "url", event.currentTarget.value)}
              />
            </label>
          ) : (
            <p class="hint">
              {text.file} <code>{picture.fileId}</code>
            </p>
          )}
          {TEXTS.map((name) => (
            <label key={name}>
              {text[name]}
              <input
                value={String(picture[name] ?? "")}
                onInput={(event) => change(place, name, event.currentTarget.value)}
              />
            </label>
          ))}
          <Remove
            name={text.pictureToRemove(place + 1)}
            onUse={() => setPictures(pictures.filter((one) => one !== picture))}
          />
        </fieldset>
      ))}
      <Failure error={error} />
      <div class="actions">
        <FileButton label={text.upload} accept="image/*" onFiles={(files) => void add(files)} />
        <button type="button" class="quiet" onClick={() => setPictures([...pictures, { url: "" }])}>
          {text.addAddress}
        </button>
      </div>
    </>
  );
}

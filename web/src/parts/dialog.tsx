// A dialog; its header is no landmark of the page.
import { Modal } from "@mantine/core";
import type { ReactNode } from "react";
import { t } from "../messages";

export function Dialog(given: { opened: boolean; onClose: () => void; title: string; closeLabel?: string; size?: string; children: ReactNode }) {
  const { opened, onClose, title, closeLabel = t("app.close"), size = "md", children } = given;
  return (
    <Modal.Root opened={opened} onClose={onClose} size={size}>
      <Modal.Overlay />
      <Modal.Content>
        <Modal.Header role="presentation">
          <Modal.Title component="h2" fw={700}>{title}</Modal.Title>
          <Modal.CloseButton aria-label={closeLabel} />
        </Modal.Header>
        <Modal.Body>{children}</Modal.Body>
      </Modal.Content>
    </Modal.Root>
  );
}

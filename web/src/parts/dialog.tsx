// A dialog; its header is no landmark of the page. A click beside it does not close it, because what was typed into it would be lost;
// one that `keeps` has it all when it is opened again.
import { Modal } from "@mantine/core";
import type { ReactNode } from "react";
import { t } from "../messages";

export function Dialog(given: { opened: boolean; onClose: () => void; title: string; closeLabel?: string; size?: string; keeps?: boolean; children: ReactNode }) {
  const { opened, onClose, title, closeLabel = t("app.close"), size = "md", keeps = false, children } = given;
  return (
    <Modal.Root opened={opened} onClose={onClose} size={size} closeOnClickOutside={false} keepMounted={keeps}>
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
